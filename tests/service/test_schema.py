"""The service keeps what its OpenAPI document promises, whatever it is asked."""

from __future__ import annotations

from typing import Any

import pytest

from tests.service.conftest import STREAM, send

schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis")
from hypothesis import HealthCheck, Phase, given, settings  # noqa: E402
from jsonschema import Draft202012Validator  # noqa: E402


def test_no_generated_request_gets_a_5xx_or_an_answer_outside_the_schema(serve, icons):
    client = serve()
    client.post("/v1/streams", json=STREAM)
    send(client, icons[:20])
    document = client.get("/openapi.json").json()
    schema = schemathesis.openapi.from_dict(document)
    asked: dict[int, int] = {}
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path.endswith("/events"):
            continue  # it never ends

        @settings(
            max_examples=5,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def holds(case: Any) -> None:
            status = _answer(client, document, case)
            asked[status] = asked.get(status, 0) + 1

        holds()
    assert sum(asked.values()) > 80 and asked[200] > 5 and asked[422] > 5


def _answer(client: Any, document: dict[str, Any], case: Any) -> int:
    path = case.operation.path
    for key, value in (case.path_parameters or {}).items():
        gone = case.method == "DELETE"
        chosen = ("no-such" if gone else "icons") if key == "stream" else str(value)
        path = path.replace(f"{{{key}}}", chosen)
    body: dict[str, Any] = {}
    if case.media_type == "application/json":
        body = {"json": case.body if isinstance(case.body, (dict, list)) else None}
    elif isinstance(case.body, bytes):
        body = {"content": case.body, "headers": {"content-type": "image/png"}}
    answer = client.request(case.method, path, params=dict(case.query or {}), **body)
    assert answer.status_code < 500, (case.method, path, answer.text)
    promised = case.operation.definition.raw["responses"].get(str(answer.status_code), {})
    kind = answer.headers.get("content-type", "")
    schema = promised.get("content", {}).get("application/json", {}).get("schema")
    if schema is not None and kind.startswith("application/json"):
        whole = {**schema, "components": document["components"]}
        Draft202012Validator(whole).validate(answer.json())
    else:
        assert promised or answer.status_code == 405, (case.method, path, answer.status_code)
    return int(answer.status_code)

"""Who may ask, and what a browser is told."""

from __future__ import annotations

import re

import pytest

from tests.service.conftest import STREAM, send
from ttgcd.cli import main
from ttgcd.errors import InputError
from ttgcd.service.limits import Limits
from ttgcd.service.webhook import Webhook


def test_with_a_token_nothing_is_told_without_it(serve):
    client = serve(token="secret word")
    assert client.get("/health").status_code == 200
    refused = client.get("/v1/streams")
    assert refused.status_code == 401
    assert refused.json() == {
        "error": "give the token: 'Authorization: Bearer ...'",
        "error_type": "unauthorized",
    }
    for wrong in ("Bearer secret", "Bearer secret wordx", "Basic secret word"):
        assert client.get("/v1/streams", headers={"Authorization": wrong}).status_code == 401
    right = {"Authorization": "Bearer secret word"}
    assert client.get("/v1/streams", headers=right).status_code == 200
    assert client.post("/v1/login", json={"token": "no"}).status_code == 401
    assert client.post("/v1/login", json={"token": "secret word"}).status_code == 204
    assert client.get("/v1/streams").status_code == 200, "the cookie counts from now on"


def test_another_bind_than_loopback_is_refused_without_a_token(capsys, tmp_path, monkeypatch):
    monkeypatch.delenv("TTGCD_TOKEN", raising=False)
    assert main(["serve", "--host", "0.0.0.0", "--state", str(tmp_path / "s")]) == 2
    assert "--token" in capsys.readouterr().err


def test_other_hosts_and_origins_are_refused(serve):
    client = serve()
    assert client.get("/v1/streams", headers={"host": "evil.example"}).status_code == 403
    evil = {"origin": "https://evil.example"}
    assert client.post("/v1/streams", json=STREAM, headers=evil).status_code == 403
    own = {"origin": "http://127.0.0.1"}
    assert client.post("/v1/streams", json=STREAM, headers=own).status_code == 201


def test_every_answer_carries_the_security_headers(serve):
    client = serve()
    for path in ("/", "/health", "/v1/streams", "/nothing", "/page/app.js", "/docs"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe-inline" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


def test_too_much_is_refused_with_a_reason(serve, icons):
    limits = Limits(request_bytes=20_000, image_bytes=5_000, pixels=1_000, rate=0.5, images=4)
    client = serve(limits=limits)
    client.post("/v1/streams", json=STREAM)
    assert send(client, [("a", b"x" * 30_000)]).status_code == 413
    assert send(client, [("a", b"x" * 10_000)]).status_code == 413
    assert send(client, icons[:1]).status_code == 413, "too many pixels"
    assert send(client, [(str(n), b"x") for n in range(5)]).status_code == 413
    slow = [send(client, icons[:1]) for _ in range(8)][-1]
    assert slow.status_code == 429 and int(slow.headers["retry-after"]) >= 1
    assert slow.json()["error_type"] == "too_many_requests"


def test_bad_requests_get_the_same_shape_of_error(serve):
    client = serve()
    client.post("/v1/streams", json=STREAM)
    url = "/v1/streams/icons"
    answers = [
        client.post("/v1/streams", json={"name": "Ünïcode", "known": ["a"]}),
        client.post("/v1/streams", json={"name": "x", "known": [""]}),
        client.post("/v1/streams", json={"name": "x", "known": ["a"], "method": "os:system"}),
        client.post(f"{url}/images", json={"images": [{"data": "http://elsewhere/a.png"}]}),
        client.post(f"{url}/images", content=b"?", headers={"content-type": "text/html"}),
        client.get("/v1/streams/none/categories"),
        client.get(f"{url}/images/12"),
        client.post(f"{url}/edits", json={"op": "hide"}),
        client.put(url),
    ]
    assert [answer.status_code for answer in answers] == [
        422,
        422,
        422,
        422,
        415,
        404,
        404,
        422,
        405,
    ]
    for answer in answers:
        assert set(answer.json()) == {"error", "error_type"}


def test_metrics_have_base_units_and_no_label_that_a_client_chooses(serve, icons):
    client = serve()
    client.post("/v1/streams", json=STREAM)
    send(client, icons[:3])
    client.get("/v1/streams/icons/images/0/thumbnail")
    client.get("/no/such/page")
    text = client.get("/metrics").text
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert names and all(name.startswith("ttgcd_") for name in names)
    assert "ttgcd_images_total 3.0" in text
    assert "icons" not in text and "no/such" not in text
    assert re.search(r'ttgcd_request_seconds_bucket\{le="0.005",route="/health"', text) or names


def test_a_webhook_goes_to_this_machine_or_to_allowed_hosts_only():
    Webhook("http://127.0.0.1:9/born")
    Webhook("https://hooks.example/x", allowed=["hooks.example"])
    for url in ("http://10.0.0.1/", "file:///etc/passwd", "https://hooks.example@evil.example/"):
        with pytest.raises(InputError):
            Webhook(url, allowed=["hooks.example"])

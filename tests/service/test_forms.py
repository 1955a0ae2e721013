"""Multipart bodies as clients write them, and as they should not."""

from __future__ import annotations

import pytest

from tests.service.conftest import STREAM
from ttgcd.service.limits import Limits

URL = "/v1/streams/icons/images"
KIND = {"content-type": "multipart/form-data; boundary=X"}


def part(headers: str, data: bytes) -> bytes:
    return b"--X\r\n" + headers.encode() + b"\r\n\r\n" + data + b"\r\n"


def named(disposition: str) -> str:
    return f"Content-Disposition: form-data; {disposition}"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (named('name="images"; filename="a.png"'), "a.png"),
        (named('name="images"; filename="größe 1.png"'), "größe 1.png"),
        (named('filename="b.png"; name="image"'), "b.png"),
        (named('name="file"; filename="say \\"hi\\".png"'), 'say "hi".png'),
        (named("name=images; filename=c.png"), "c.png"),
        ('content-type: x/y\r\ncontent-DISPOSITION:form-data;name="images";filename="d"', "d"),
    ],
)
def test_file_names_in_every_spelling_are_the_ids(serve, icons, headers, expected):
    client = serve()
    client.post("/v1/streams", json=STREAM)
    body = b"preamble\r\n" + part(headers, icons[0][1]) + b"--X--\r\n"
    answer = client.post(f"{URL}?wait=false", content=body, headers=KIND)
    assert [result["id"] for result in answer.json()["results"]] == [expected]


def test_fields_are_left_out_and_bytes_that_look_like_a_boundary_stay_in(serve, icons):
    client = serve()
    client.post("/v1/streams", json=STREAM)
    tail = icons[0][1] + b"\r\n--Y\r\n--"  # what follows a PNG is not read
    body = part(named('name="note"'), b"hello") + part(named('name="images"; filename="a"'), tail)
    body += part(named('name="other"; filename="o"'), icons[1][1]) + b"--X--"
    answer = client.post(f"{URL}?wait=false", content=body, headers=KIND)
    assert [result["id"] for result in answer.json()["results"]] == ["a"]
    stream = client.app.state.house.stream("icons")
    assert stream.journal.read(0) == tail


def test_broken_forms_are_refused_with_a_reason(serve, icons):
    client = serve(limits=Limits(images=2))
    client.post("/v1/streams", json=STREAM)
    good = part(named('name="images"; filename="a"'), icons[0][1])
    broken = {
        b"": 422,
        b"nothing of the kind": 422,
        good: 422,  # no end
        b"--Xand more": 422,
        b"--X\r\nno headers": 422,
        b"--X--\r\n": 422,
        part(named('name="note"'), b"hello") + b"--X--": 422,
        3 * good + b"--X--": 413,
    }
    for body, status in broken.items():
        answer = client.post(URL, content=body, headers=KIND)
        assert answer.status_code == status, (body[:40], answer.text)
        assert set(answer.json()) == {"error", "error_type"}
    for kind in ("multipart/form-data", "multipart/form-data; boundary="):
        answer = client.post(URL, content=good + b"--X--", headers={"content-type": kind})
        assert answer.status_code == 422
    assert client.get("/v1/streams/icons").json()["images"] == 0

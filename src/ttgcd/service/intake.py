"""From the body of a request to images: multipart, raw bytes, JSON with data URIs."""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from pydantic import ValidationError
from starlette.requests import Request

from ttgcd.service.errors import Invalid, NotAnImage, ServiceError, TooLarge
from ttgcd.service.journal import Entry
from ttgcd.service.limits import Limits
from ttgcd.service.multipart import files_of
from ttgcd.service.schemas import SentImages
from ttgcd.streams.base import Rejection
from ttgcd.streams.decode import decode
from ttgcd.streams.formats import unknown_format
from ttgcd.vlm.preprocess import Preprocess

LONGEST_ID = 512
_FIELDS = ("images", "image", "file")


@dataclass(frozen=True)
class Sent:
    """One image as it came; ``problem`` when it cannot be taken."""

    id: str
    data: bytes
    problem: ServiceError | None = None
    entry: Entry | None = None


async def read_images(request: Request, limits: Limits) -> list[Sent]:
    """The images of a request, in the order in which they stand there.

    The id is the file name of a multipart part, ``?id=`` or the header ``X-Image-Id`` beside raw
    bytes, or ``id`` in JSON; who gives none gets one, and a retry of his is another image.
    """
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind == "multipart/form-data":
        return _from_form(await request.body(), request.headers["content-type"], limits)
    if kind == "application/json":
        return _from_json(await request.body(), limits)
    if kind == "application/octet-stream" or kind.startswith("image/"):
        given = request.query_params.get("id") or unquote(request.headers.get("x-image-id", ""))
        return [_sent(given, await request.body(), limits)]
    raise NotAnImage(
        f"content type {kind[:80]!r}: send multipart/form-data, image/*, "
        "application/octet-stream or application/json"
    )


def _from_form(body: bytes, content_type: str, limits: Limits) -> list[Sent]:
    parts = files_of(body, content_type, limits.images)
    sent = [_sent(p.filename, p.data, limits) for p in parts if p.field in _FIELDS]
    if not sent:
        raise Invalid("the form holds no file: give each image as a part named 'images'")
    return sent


def _from_json(body: bytes, limits: Limits) -> list[Sent]:
    try:
        images = SentImages.model_validate_json(body).images
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise Invalid(f"{where or 'body'}: {first['msg']}") from None
    if len(images) > limits.images:
        raise TooLarge(f"{len(images)} images in one request, at most {limits.images}")
    sent = []
    for image in images:
        try:
            sent.append(_sent(image.id or "", data_uri(image.data), limits))
        except ServiceError as error:
            sent.append(Sent(image.id or "", b"", error))
    return sent


def data_uri(text: str) -> bytes:
    """The bytes in a base64 data URI. Nothing is ever fetched."""
    head, comma, payload = text.partition(",")
    if not (head.startswith("data:") and head.endswith(";base64") and comma):
        raise Invalid("an image is a data URI, as in 'data:image/jpeg;base64,...'")
    try:
        return base64.b64decode(payload, validate=True)
    except (binascii.Error, ValueError):
        raise Invalid("the data URI is not base64") from None


def _sent(given: str, data: bytes, limits: Limits) -> Sent:
    name = given or uuid.uuid4().hex
    if len(name) > LONGEST_ID or not name.isprintable():
        return Sent(name[:80], b"", Invalid(f"an id is printable and at most {LONGEST_ID} long"))
    if len(data) > limits.image_bytes:
        size = f"{len(data)} bytes, at most {limits.image_bytes}"
        return Sent(name, b"", TooLarge(f"the image has {size}"))
    return Sent(name, data)


def opened(sent: Sequence[Sent], preprocess: Preprocess, limits: Limits) -> list[Sent]:
    """With pixels, or with the reason why there are none. Slow: not for the event loop."""
    found = []
    for image in sent:
        if image.problem is None:
            try:
                pixels = preprocess(decode(image.data, limits.pixels))
                entry = Entry(image.id, image.data, pixels)
                image = Sent(image.id, image.data, entry=entry)
            except Rejection as error:
                image = Sent(image.id, b"", _problem(str(error), image.data))
        found.append(image)
    return found


def _problem(reason: str, data: bytes) -> ServiceError:
    if reason.startswith("too many pixels"):
        return TooLarge(reason)
    if data and reason == unknown_format(data):
        return NotAnImage(reason)
    return Invalid(reason)

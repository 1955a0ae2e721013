"""What can be asked over HTTP, a file for each kind of thing."""

from __future__ import annotations

from typing import Any

from ttgcd.service.schemas import Error

#: What every route may answer besides a success.
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": Error, "description": text}
    for status, text in {
        400: "the request cannot be read",
        401: "no or a wrong token",
        403: "not from there",
        404: "no such thing",
        409: "in conflict with what is there",
        413: "too large",
        415: "not an image, or not a content type that is taken",
        422: "what was given cannot be used",
        429: "too much at once: try again after Retry-After seconds",
        503: "starting, stopping, or the disk is full",
    }.items()
}

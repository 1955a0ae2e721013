"""Images: send, look, search; what has changed since."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from ttgcd.service.errors import Conflict, NotFound, NotReady, ServiceError, TooMany
from ttgcd.service.house import House
from ttgcd.service.intake import Sent, opened, read_images
from ttgcd.service.limits import Limits, Rate
from ttgcd.service.live import LiveStream
from ttgcd.service.maps import SIZES, Thumbnails
from ttgcd.service.metrics import Metrics
from ttgcd.service.present import chosen, rows_of
from ttgcd.service.routes import ERRORS
from ttgcd.service.routes.streams import StreamName
from ttgcd.service.schemas import (
    Changes,
    Found,
    Index,
    Result,
    Results,
    Row,
    Rows,
    SearchResults,
    SentImages,
)
from ttgcd.service.schemas import Query as TextQuery

_PATIENCE = 30.0
_AT_ONCE = 8192
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": SentImages.model_json_schema()},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["images"],
                    "properties": {
                        "images": {"type": "array", "items": {"type": "string", "format": "binary"}}
                    },
                }
            },
            "image/*": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
_BODY["requestBody"]["content"]["application/json"]["schema"] = {
    "$ref": "#/components/schemas/SentImages"
}


def router(house: House, limits: Limits, metrics: Metrics, thumbnails: Thumbnails) -> APIRouter:
    routes = APIRouter(prefix="/v1/streams/{stream}", tags=["images"], responses=ERRORS)
    rate = Rate(limits.rate, limits.images)

    @routes.post("/images", openapi_extra=_BODY)
    async def send_images(
        stream: StreamName,
        request: Request,
        id: Annotated[str | None, Query(max_length=512)] = None,
        wait: bool = True,
    ) -> Results:
        """Images in any of three ways. Every image in the answer is on disk. With ``wait=false``
        the answer comes as soon as they are, without categories."""
        found = house.stream(stream)
        if found.paused:
            raise Conflict(f"stream {stream!r} is paused")
        if found.waiting >= limits.queue:
            raise TooMany("more images wait than the queue holds", retry_after=2)
        sent = await read_images(request, limits)
        client = request.client.host if request.client else ""
        if seconds := rate.wait(client, len(sent)):
            raise TooMany("more images than the rate allows", retry_after=math.ceil(seconds))
        sent = await run_in_threadpool(opened, sent, found.vlm.preprocess, limits)
        results = await _taken(found, sent, wait)
        refused = sum(result.error is not None for result in results)
        metrics.refused.inc(refused)
        metrics.images.inc(len(results) - refused)
        if refused == len(results):
            _raise_first(sent, results)
        return Results(results=results)

    @routes.get("/images")
    def list_images(
        stream: StreamName,
        category: Annotated[int | None, Query(ge=0, le=2**31)] = None,
        order: Literal["newest", "typical", "doubt"] = "newest",
        offset: Annotated[int, Query(ge=0, le=2**53)] = 0,
        limit: Annotated[int, Query(ge=1, le=500)] = 100,
        index: Annotated[list[Index] | None, Query(max_length=2000)] = None,
    ) -> Rows:
        """The images of a category or of all; those that ``index`` names, in its order, if any."""
        found = house.stream(stream)
        view = found.views.now()
        if index is not None:
            there = [i for i in index if i < len(found.journal)]
            return Rows(total=len(there), images=rows_of(found, view, there))
        rows = chosen(view, category, order)
        part = rows[min(offset, len(rows)) :][:limit].tolist()
        return Rows(total=len(rows), images=rows_of(found, view, part))

    @routes.get("/images/{index}")
    def get_image(stream: StreamName, index: Annotated[Index, Path()]) -> Row:
        found = house.stream(stream)
        _check(found, index)
        rows = rows_of(found, found.views.now(), [index])
        if not rows:
            raise NotFound(f"image {index} has no answer yet")
        return rows[0]

    @routes.get(
        "/images/{index}/thumbnail",
        response_class=Response,
        responses={200: {"content": {"image/jpeg": {}}}},
    )
    def thumbnail(
        stream: StreamName,
        index: Annotated[Index, Path()],
        size: Annotated[int, Query(ge=1, le=1024)] = 192,
    ) -> Response:
        found = house.stream(stream)
        _check(found, index)
        nearest = next((side for side in SIZES if side >= size), SIZES[-1])
        data = thumbnails.get(found, index, nearest)
        headers = {"Cache-Control": "private, max-age=86400"}
        return Response(data, media_type="image/jpeg", headers=headers)

    @routes.get("/changes")
    def changes(
        stream: StreamName,
        after: Annotated[int, Query(ge=0, le=2**53)] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 500,
    ) -> Changes:
        """Rows whose answer changed after the cursor. A row that changed twice comes once."""
        found = house.stream(stream)
        view = found.views.now(fresh=True)
        changed = found.rows.column("changed")
        rows = np.flatnonzero(changed > after)
        rows = rows[np.argsort(changed[rows])]
        part = rows[:limit]
        cursor = int(changed[part[-1]]) if len(part) else after
        return Changes(
            cursor=cursor,
            more=len(rows) > len(part),
            changes=rows_of(found, view, part.tolist()),
        )

    @routes.post("/search")
    def search(stream: StreamName, query: TextQuery) -> SearchResults:
        """Images by what a text says, by the model's own text tower."""
        found = house.stream(stream)
        view = found.views.now()
        best = _similar(found, query.text, len(view), query.limit)
        rows = {row.index: row for row in rows_of(found, view, [index for index, _ in best])}
        return SearchResults(
            results=[Found(similarity=s, image=rows[i]) for i, s in best if i in rows]
        )

    return routes


async def _taken(stream: LiveStream, sent: Sequence[Sent], wait: bool) -> list[Result]:
    entries = [image.entry for image in sent if image.entry is not None]
    placed = {}
    if entries:
        receipt, durable = stream.receive(entries, wait)
        await asyncio.wrap_future(durable)
        placed = {entry.id: place for entry, place in zip(entries, receipt.placed)}
        if wait:
            answered = asyncio.wrap_future(receipt.done)
            await asyncio.wait([answered], timeout=_PATIENCE)
    indexes = [place.index for place in placed.values() if not place.conflict]
    answers = rows_of(stream, stream.views.latest, indexes) if wait else ()
    rows = {row.index: row for row in answers}
    results = []
    for image in sent:
        place = placed.get(image.id) if image.entry is not None else None
        if place is None or place.conflict:
            problem = image.problem or Conflict(f"another image has the id {image.id!r}")
            results.append(Result(id=image.id, error=str(problem), error_type=problem.kind))
        else:
            row = rows.get(place.index)
            results.append(
                Result.model_construct(
                    id=image.id, index=place.index, duplicate=not place.new, answer=row
                )
            )
    return results


def _raise_first(sent: Sequence[Sent], results: Sequence[Result]) -> None:
    """Nothing was taken: the answer is an error, the first one."""
    for image, result in zip(sent, results):
        problem: ServiceError = image.problem or Conflict(result.error or "refused")
        raise problem
    raise NotReady("nothing was sent")


def _check(stream: LiveStream, index: int) -> None:
    if index >= len(stream.journal):
        raise NotFound(f"no image {index} in this stream")


def _similar(stream: LiveStream, text: str, rows: int, limit: int) -> list[tuple[int, float]]:
    """The nearest images and their cosines, best first."""
    import torch

    file = stream.learner.features
    rows = min(rows, file.count)
    template = stream.task.templates[0]
    with torch.inference_mode():
        wanted = stream.vlm.encode_texts([template.replace("{}", text)]).cpu().numpy()[0]
    cosines = [
        file.read(start, min(start + _AT_ONCE, rows)) @ wanted for start in range(0, rows, _AT_ONCE)
    ]
    if not cosines:
        return []
    every = np.concatenate(cosines)
    best = np.argsort(-every, kind="stable")[:limit]
    return [(int(i), float(every[i])) for i in best]

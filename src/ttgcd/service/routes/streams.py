"""Streams: create, look, pause, delete, download, watch."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from ttgcd.service.errors import Conflict, NotFound
from ttgcd.service.house import House
from ttgcd.service.live import LiveStream
from ttgcd.service.maps import Maps
from ttgcd.service.present import stats_of, stream_info
from ttgcd.service.routes import ERRORS
from ttgcd.service.run_folder import draw_report
from ttgcd.service.schemas import Map, NewStream, Stats, StreamInfo, StreamPatch, Streams

_PATIENCE = 30.0  # seconds that a request to finish waits for the end
_QUIET = 15.0  # seconds after which a watcher is told that the service still lives
StreamName = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]


def router(house: House, maps: Maps) -> APIRouter:
    routes = APIRouter(prefix="/v1/streams", tags=["streams"], responses=ERRORS)

    @routes.get("")
    def list_streams() -> Streams:
        return Streams(streams=[stream_info(stream) for stream in house.streams()])

    @routes.post("", status_code=201)
    def create_stream(new: NewStream) -> StreamInfo:
        return stream_info(house.create(new.name, new.settings()))

    @routes.get("/{stream}")
    def get_stream(stream: StreamName) -> StreamInfo:
        return stream_info(house.stream(stream))

    @routes.patch("/{stream}")
    def pause_stream(stream: StreamName, patch: StreamPatch) -> StreamInfo:
        found = house.stream(stream)
        found.pause(patch.paused)
        return stream_info(found)

    @routes.post("/{stream}/finish")
    async def finish_stream(stream: StreamName, wait: bool = True) -> StreamInfo:
        """The stream is over, for now: its last images are learned from though they make no whole
        batch, and the method makes its last revisions, as at the end of a folder run. Images may
        come afterwards; they are a run that goes on from there. ``finished`` in the answer is the
        number of images up to the last end that the method has come to: with ``wait=false``, or if
        it takes very long, not this one yet."""
        found = house.stream(stream)
        images = len(found.journal)
        if not images:
            raise Conflict("no image has arrived yet: there is nothing to finish")
        await run_in_threadpool(found.learner.finish)
        until = time.monotonic() + (_PATIENCE if wait else 0.0)
        while found.learner.finished < images and time.monotonic() < until:
            if found.learner.failed is not None or not house.ready:
                break
            await asyncio.sleep(0.05)
        return stream_info(found)

    @routes.delete("/{stream}", status_code=204)
    def delete_stream(stream: StreamName) -> None:
        house.delete(stream)

    @routes.get("/{stream}/stats")
    def stats(stream: StreamName) -> Stats:
        found = house.stream(stream)
        return stats_of(found, found.views.now(), time.time())

    @routes.get("/{stream}/map")
    def points(stream: StreamName) -> Map:
        return maps.of(house.stream(stream))

    @routes.get(
        "/{stream}/download",
        response_class=Response,
        responses={200: {"content": {"application/octet-stream": {}, "text/csv": {}}}},
    )
    def download(
        stream: StreamName, format: Annotated[Literal["csv", "parquet", "report"], Query()] = "csv"
    ) -> Response:
        return _download(house.stream(stream), format)

    @routes.get(
        "/{stream}/events",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {}}}},
    )
    async def events(
        stream: StreamName,
        request: Request,
        last_event_id: Annotated[str | None, Header(max_length=40)] = None,
    ) -> StreamingResponse:
        found = house.stream(stream)
        after = found.events.last
        if last_event_id is not None and last_event_id.isdecimal():
            after = int(last_event_id)
        return StreamingResponse(
            _watch(found, house, after, request),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    return routes


async def _watch(
    stream: LiveStream, house: House, after: int, request: Request
) -> AsyncIterator[str]:
    loop, news = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        with suppress(RuntimeError):  # the loop has closed
            loop.call_soon_threadsafe(news.set)

    stream.events.listen(wake)
    try:
        yield ": welcome\n\n"
        while house.ready and not await request.is_disconnected():
            news.clear()
            for event in stream.events.after(after):
                after = event.number
                yield event.sse()
            try:
                await asyncio.wait_for(news.wait(), _QUIET)
            except TimeoutError:
                yield ": still here\n\n"
            except asyncio.TimeoutError:  # its name before Python 3.11
                yield ": still here\n\n"
    finally:
        stream.events.leave(wake)


def _download(stream: LiveStream, format: str) -> Response:
    import pyarrow.csv
    import pyarrow.parquet

    stream.views.put_down()
    run = stream.folder / "run"
    if format == "report":
        view = stream.views.now(fresh=True)
        if not len(view):
            raise NotFound("no image has been answered yet: there is nothing to report")
        page = draw_report(stream, run, view.columns)
        data, kind, name = page.read_bytes(), "text/html; charset=utf-8", "report.html"
    elif format == "parquet":
        data = (run / "assignments.parquet").read_bytes()
        kind, name = "application/octet-stream", "assignments.parquet"
    else:
        buffer = io.BytesIO()
        pyarrow.csv.write_csv(pyarrow.parquet.read_table(run / "assignments.parquet"), buffer)
        data, kind, name = buffer.getvalue(), "text/csv; charset=utf-8", "assignments.csv"
    disposition = f'attachment; filename="{stream.name}-{name}"'
    return Response(data, media_type=kind, headers={"Content-Disposition": disposition})

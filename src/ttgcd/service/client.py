"""Talk to a service from Python: typed, with retries; sync, and async with bounded concurrency."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel

from ttgcd.errors import InputError
from ttgcd.service.schemas import (
    Categories,
    CategoryInfo,
    Changes,
    EditInfo,
    Edits,
    Found,
    Result,
    Results,
    SearchResults,
    StreamInfo,
    Streams,
)

#: An image: its id and its bytes, or a file whose name is its id.
Image = tuple[str, bytes] | str | Path
Record = TypeVar("Record", bound=BaseModel)
_AGAIN = (429, 503)


class ServiceProblem(InputError):
    """The service refused; ``status`` and ``error_type`` say how."""

    def __init__(self, status: int, error_type: str, message: str) -> None:
        super().__init__(message)
        self.status, self.error_type = status, error_type


class _Calls:
    """What both clients ask: a method, a path, arguments for httpx, and the record that comes."""

    def __init__(self, url: str, token: str | None, timeout: float, retries: int) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._options: dict[str, Any] = {
            "base_url": url.rstrip("/"),
            "headers": headers,
            "timeout": timeout,
        }
        self._retries = retries

    def _pause(self, tries: int, answer: httpx.Response | None) -> float:
        """Seconds until the next try; an error when there is none."""
        if tries >= self._retries:
            if answer is None:
                url = self._options["base_url"]
                raise InputError(f"no answer from {url}: is the service running?")
            raise _problem(answer)
        said = answer.headers.get("retry-after", "") if answer is not None else ""
        return float(said) if said.isdigit() else min(8.0, 0.25 * 2**tries)


class Client(_Calls):
    """A service at ``url``.

    Images have ids of the client's choice, so that a retry is harmless: requests are repeated
    when the connection breaks or the service is busy.

    >>> client = Client("http://127.0.0.1:8000")  # doctest: +SKIP
    >>> client.create("pets", known=["cat", "dog"])  # doctest: +SKIP
    >>> for result in client.send("pets", ["a.jpg", "b.jpg"]):  # doctest: +SKIP
    ...     print(result.id, result.answer.name)
    """

    def __init__(
        self, url: str, token: str | None = None, *, timeout: float = 120.0, retries: int = 6
    ) -> None:
        super().__init__(url, token, timeout, retries)
        self._http = httpx.Client(**self._options)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def streams(self) -> list[StreamInfo]:
        return self._ask("GET", "/v1/streams", Streams).streams

    def stream(self, name: str) -> StreamInfo:
        return self._ask("GET", f"/v1/streams/{name}", StreamInfo)

    def create(self, name: str, known: Sequence[str] = (), **settings: Any) -> StreamInfo:
        said = {"name": name, "known": list(known), **settings}
        return self._ask("POST", "/v1/streams", StreamInfo, json=said)

    def finish(self, name: str) -> StreamInfo:
        """The stream is over, for now: the method's last revisions."""
        return self._ask("POST", f"/v1/streams/{name}/finish", StreamInfo)

    def delete(self, name: str) -> None:
        self._request("DELETE", f"/v1/streams/{name}")

    def send(
        self, stream: str, images: Iterable[Image], *, at_once: int = 64, wait: bool = True
    ) -> Iterator[Result]:
        """Results in the order of the images; those of a request come when it is answered."""
        for part in _parts(images, at_once):
            yield from self._ask("POST", _send(stream, wait), Results, files=part).results

    def changes(self, stream: str, after: int = 0) -> Changes:
        """Rows that changed after a cursor, all of them."""
        found = self._ask("GET", f"/v1/streams/{stream}/changes?after={after}", Changes)
        while found.more:
            url = f"/v1/streams/{stream}/changes?after={found.cursor}"
            more = self._ask("GET", url, Changes)
            found = Changes(
                cursor=more.cursor, more=more.more, changes=found.changes + more.changes
            )
        return found

    def categories(self, stream: str) -> list[CategoryInfo]:
        return self._ask("GET", f"/v1/streams/{stream}/categories", Categories).categories

    def edit(self, stream: str, op: str, **said: Any) -> list[EditInfo]:
        """One edit of ``ttgcd edit``; images are given by their index."""
        url = f"/v1/streams/{stream}/edits"
        return self._ask("POST", url, Edits, json={"op": op, **said}).edits

    def search(self, stream: str, text: str, limit: int = 60) -> list[Found]:
        url, said = f"/v1/streams/{stream}/search", {"text": text, "limit": limit}
        return self._ask("POST", url, SearchResults, json=said).results

    def download(self, stream: str, to: str | Path, format: str = "parquet") -> Path:
        answer = self._request("GET", f"/v1/streams/{stream}/download?format={format}")
        Path(to).write_bytes(answer.content)
        return Path(to)

    def _ask(self, method: str, path: str, record: type[Record], **body: Any) -> Record:
        return record.model_validate_json(self._request(method, path, **body).content)

    def _request(self, method: str, path: str, **body: Any) -> httpx.Response:
        for tries in range(self._retries + 1):
            answer = None
            try:
                answer = self._http.request(method, path, **body)
                if answer.is_success:
                    return answer
                if answer.status_code not in _AGAIN:
                    raise _problem(answer)
            except httpx.TransportError:
                pass
            time.sleep(self._pause(tries, answer))
        raise AssertionError("the last try returns or raises")


class AsyncClient(_Calls):
    """The sending half of ``Client`` for asyncio, several requests at a time."""

    def __init__(
        self, url: str, token: str | None = None, *, timeout: float = 120.0, retries: int = 6
    ) -> None:
        super().__init__(url, token, timeout, retries)
        self._http = httpx.AsyncClient(**self._options)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._http.aclose()

    async def send(
        self,
        stream: str,
        images: Iterable[Image],
        *,
        at_once: int = 64,
        concurrency: int = 4,
        wait: bool = True,
    ) -> AsyncIterator[Result]:
        """Results as requests are answered, at most ``concurrency`` of them under way."""
        parts = _parts(images, at_once)
        under_way = {self._begin(stream, part, wait) for part in islice(parts, concurrency)}
        try:
            while under_way:
                done, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    for result in task.result():
                        yield result
                under_way |= {self._begin(stream, part, wait) for part in islice(parts, len(done))}
        finally:
            for task in under_way:
                task.cancel()

    def _begin(self, stream: str, part: list[Any], wait: bool) -> asyncio.Task[list[Result]]:
        return asyncio.ensure_future(self._post(stream, part, wait))

    async def _post(self, stream: str, part: list[Any], wait: bool) -> list[Result]:
        for tries in range(self._retries + 1):
            answer = None
            try:
                answer = await self._http.post(_send(stream, wait), files=part)
                if answer.is_success:
                    return Results.model_validate_json(answer.content).results
                if answer.status_code not in _AGAIN:
                    raise _problem(answer)
            except httpx.TransportError:
                pass
            await asyncio.sleep(self._pause(tries, answer))
        raise AssertionError("the last try returns or raises")


def _send(stream: str, wait: bool) -> str:
    return f"/v1/streams/{stream}/images" + ("" if wait else "?wait=false")


def _parts(images: Iterable[Image], at_once: int) -> Iterator[list[Any]]:
    """Multipart parts, so many images a request; files are read when their turn comes."""
    rest = iter(images)
    while group := list(islice(rest, at_once)):
        named = [(i, Path(i).read_bytes()) if not isinstance(i, tuple) else i for i in group]
        yield [("images", (str(name), data)) for name, data in named]


def _problem(answer: httpx.Response) -> ServiceProblem:
    try:
        record = answer.json()
        return ServiceProblem(answer.status_code, record["error_type"], record["error"])
    except (ValueError, KeyError, TypeError):
        return ServiceProblem(answer.status_code, "http", f"status {answer.status_code}")

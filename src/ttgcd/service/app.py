"""The application: routes, errors, the page, and its life from start to stop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from ttgcd import __version__
from ttgcd.errors import InputError
from ttgcd.service.errors import NoToken, NotReady, ServiceError
from ttgcd.service.guard import COOKIE, Guard, same
from ttgcd.service.house import House
from ttgcd.service.limits import Limits
from ttgcd.service.maps import Maps, Thumbnails
from ttgcd.service.metrics import Measured, Metrics
from ttgcd.service.routes import ERRORS, edits, images, model, streams
from ttgcd.service.schemas import Health, SentImages, Token
from ttgcd.service.watch import Watch
from ttgcd.service.webhook import Webhook

PAGE = Path(__file__).parent / "page"


@dataclass(frozen=True)
class ServiceSettings:
    """How a service runs."""

    state: Path
    model: str = "mini"
    device: str = "auto"
    token: str | None = None
    limits: Limits = field(default_factory=Limits)
    on_birth: str | None = None
    allow_hosts: Sequence[str] = ()
    watch: Path | None = None
    watch_stream: str = "watched"


def make_app(settings: ServiceSettings, prepare: Callable[[House], None] | None = None) -> FastAPI:
    """The application. ``prepare`` is called once the model is loaded, before it is ready for
    requests."""
    metrics, limits = Metrics(), settings.limits
    hook = None
    if settings.on_birth is not None:
        hook = Webhook(settings.on_birth, settings.allow_hosts)

    def born(stream: str, category: int) -> None:
        metrics.births.inc()
        if hook is not None:
            hook(stream, category)

    house = House(
        settings.state,
        settings.model,
        settings.device,
        limits.streams,
        on_birth=born,
        predicted=metrics.encoded,
    )
    life = _Life(house, settings, prepare)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        threading.Thread(target=life.begin, name="ttgcd-start", daemon=True).start()
        yield
        await asyncio.get_running_loop().run_in_executor(None, life.end)

    app = FastAPI(
        title="ttgcd",
        version=__version__,
        description="Known classes by name, novel categories as they appear.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        responses={},
    )
    app.state.house = house
    app.include_router(streams.router(house, Maps()))
    app.include_router(images.router(house, limits, metrics, Thumbnails()))
    app.include_router(edits.router(house))
    app.include_router(model.router(house, limits))
    _add_own_routes(app, house, settings, metrics, life)
    _add_errors(app)
    _add_page(app)
    _describe(app)
    app.add_middleware(Measured, metrics=metrics)
    app.add_middleware(Guard, token=settings.token, request_bytes=limits.request_bytes)
    return app


class _Life:
    """Start in the background, so that /health answers while a large model is loaded."""

    def __init__(
        self,
        house: House,
        settings: ServiceSettings,
        prepare: Callable[[House], None] | None,
    ) -> None:
        self.house, self.settings, self.prepare = house, settings, prepare
        self.problem: str | None = None
        self._watch: Watch | None = None
        self._begun = threading.Event()

    def begin(self) -> None:
        try:
            self.house.open()
            if self.prepare is not None:
                self.prepare(self.house)
            if self.settings.watch is not None:
                stream = self.house.stream(self.settings.watch_stream)
                self._watch = Watch(self.settings.watch, stream, self.settings.limits)
        except (InputError, ServiceError, OSError) as error:
            self.problem = str(error)
        finally:
            self._begun.set()

    def end(self) -> None:
        self._begun.wait(30)
        if self._watch is not None:
            self._watch.stop()
        self.house.close()


def _add_own_routes(
    app: FastAPI, house: House, settings: ServiceSettings, metrics: Metrics, life: _Life
) -> None:
    @app.get("/health", tags=["service"])
    def health() -> Health:
        """The process lives."""
        return Health(version=__version__)

    @app.get("/ready", tags=["service"], responses=ERRORS)
    def ready() -> Health:
        """The model is loaded, every stream is open."""
        if life.problem is not None:
            raise NotReady(life.problem)
        if not house.ready:
            raise NotReady("the service is starting", retry_after=2)
        return Health(version=__version__)

    @app.get(
        "/metrics",
        tags=["service"],
        response_class=Response,
        responses={**ERRORS, 200: {"content": {"text/plain": {}}}},
    )
    def read_metrics() -> Response:
        text = metrics.text(stream.waiting for stream in house.streams())
        return Response(text, media_type="text/plain; version=0.0.4")

    @app.post("/v1/login", status_code=204, tags=["service"], responses=ERRORS)
    def login(given: Token, response: Response) -> None:
        """A browser's way to the token: it is kept in a cookie that no script can read."""
        if settings.token is None:
            return
        if not same(given.token, settings.token):
            raise NoToken("this is not the token")
        response.set_cookie(COOKIE, given.token, httponly=True, samesite="strict", path="/")


def _add_errors(app: FastAPI) -> None:
    def refused(status: int, text: str, kind: str, headers: Any = None) -> JSONResponse:
        return JSONResponse({"error": text, "error_type": kind}, status, headers=headers)

    @app.exception_handler(ServiceError)
    async def service_error(request: Request, error: ServiceError) -> JSONResponse:
        wait = error.retry_after
        if wait is None and error.status in (429, 503):
            wait = 5
        headers = None if wait is None else {"Retry-After": str(max(1, wait))}
        return refused(error.status, str(error), error.kind, headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part != "body")
        return refused(422, f"{where or 'body'}: {first['msg']}", "invalid")

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> JSONResponse:
        kinds = {400: "bad_request", 404: "not_found", 405: "method_not_allowed"}
        kind = kinds.get(error.status_code, "http")
        return refused(error.status_code, str(error.detail), kind, error.headers)


def _add_page(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    def index() -> FileResponse:
        return FileResponse(PAGE / "index.html", headers={"Cache-Control": "no-cache"})

    @app.get("/docs", include_in_schema=False)
    def docs() -> FileResponse:
        return FileResponse(PAGE / "docs.html", headers={"Cache-Control": "no-cache"})

    @app.get("/favicon.ico", include_in_schema=False)
    def icon() -> FileResponse:
        return FileResponse(PAGE / "icon.svg", media_type="image/svg+xml")

    app.mount("/page", StaticFiles(directory=PAGE), name="page")


def _describe(app: FastAPI) -> None:
    """The body of POST images is read by hand: its schema has to be put in by hand, too."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = made()
            sent = SentImages.model_json_schema(ref_template="#/components/schemas/{model}")
            schema["components"]["schemas"] |= sent.pop("$defs", {})
            schema["components"]["schemas"]["SentImages"] = sent
            schema["components"]["securitySchemes"] = {
                "token": {"type": "http", "scheme": "bearer"}
            }
            schema["security"] = [{"token": []}, {}]
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]

"""What Prometheus reads at /metrics. Labels hold routes and statuses, never what a client chose."""

from __future__ import annotations

import time
from collections.abc import Iterable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The service's own figures."""

    def __init__(self) -> None:
        disable_created_metrics()  # a second series for each, which nobody reads
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "ttgcd_requests", "Requests answered", ["method", "route", "status"],
            registry=self.registry,
        )  # fmt: skip
        self.seconds = Histogram(
            "ttgcd_request_seconds", "Time until a request was answered", ["route"],
            buckets=_SECONDS, registry=self.registry,
        )  # fmt: skip
        self.images = Counter("ttgcd_images", "Images taken", registry=self.registry)
        self.refused = Counter("ttgcd_images_refused", "Images refused", registry=self.registry)
        self.predicted = Counter(
            "ttgcd_images_predicted", "Images answered by a prediction", registry=self.registry
        )
        self.predict_seconds = Counter(
            "ttgcd_predict_encode_seconds", "Time spent encoding for predictions",
            registry=self.registry,
        )  # fmt: skip
        self.births = Counter("ttgcd_categories_born", "Categories born", registry=self.registry)
        self.streams = Gauge("ttgcd_streams", "Streams", registry=self.registry)
        self.queue = Gauge(
            "ttgcd_queue_images", "Images that wait to be learned from", registry=self.registry
        )

    def encoded(self, images: int, seconds: float) -> None:
        self.predicted.inc(images)
        self.predict_seconds.inc(seconds)

    def text(self, waiting: Iterable[int]) -> bytes:
        queues = list(waiting)
        self.streams.set(len(queues))
        self.queue.set(sum(queues))
        return generate_latest(self.registry)


class Measured:
    """Counts and times requests by the route that served them."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                route = _route(scope)
                self.metrics.seconds.labels(route).observe(time.perf_counter() - began)
            await send(message)

        try:
            await self.app(scope, receive, watched)
        finally:
            self.metrics.requests.labels(_method(scope), _route(scope), str(status)).inc()


def _route(scope: Scope) -> str:
    return getattr(scope.get("route"), "path", None) or "other"


def _method(scope: Scope) -> str:
    known = ("GET", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS", "PUT")
    return scope["method"] if scope["method"] in known else "other"

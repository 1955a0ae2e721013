"""Who may ask, how much, and what the browser is told: around every request."""

from __future__ import annotations

import hmac
import json
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ttgcd.service.errors import Forbidden, NoToken, ServiceError, TooLarge

COOKIE = "ttgcd_token"
#: What anybody may ask: the page's own files (they hold no data), and whether the service lives.
OPEN = ("/health", "/ready", "/", "/page/", "/docs", "/v1/login", "/favicon.ico")
LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1", "testserver")
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "geolocation=(), microphone=()",
}


class Guard:
    """Token, host, origin, size and headers; pure ASGI, so that streams stay streams."""

    def __init__(
        self,
        app: ASGIApp,
        token: str | None,
        request_bytes: int,
    ) -> None:
        self.app, self.token, self.request_bytes = app, token, request_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {
            key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]
        }
        begun = False

        async def guarded_send(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                given = {key.lower() for key, _ in message["headers"]}
                message["headers"] = list(message["headers"]) + [
                    (name.encode(), value.encode())
                    for name, value in HEADERS.items()
                    if name.encode() not in given
                ]
            await send(message)

        taken = 0

        async def counted_receive() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self.request_bytes:
                raise TooLarge(f"a request has at most {self.request_bytes} bytes")
            return message

        try:
            self._check(scope, headers)
            await self.app(scope, counted_receive, guarded_send)
        except ServiceError as error:
            if begun:
                raise
            await _refuse(error, guarded_send)

    def _check(self, scope: Scope, headers: dict[str, str]) -> None:
        host = headers.get("host", "")
        if self.token is None and _name(host) not in LOOPBACK:
            # A page from elsewhere whose own name resolves to this machine would get here.
            raise Forbidden("without a token this service answers to its loopback names only")
        origin = headers.get("origin")
        changes = scope["method"] not in ("GET", "HEAD", "OPTIONS")
        if origin and changes and urlsplit(origin).netloc != host:
            raise Forbidden("a page of another origin may not change anything here")
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > self.request_bytes:
            raise TooLarge(f"a request has at most {self.request_bytes} bytes")
        path = scope["path"]
        is_open = any(
            path == p or (len(p) > 1 and p.endswith("/") and path.startswith(p)) for p in OPEN
        )
        if self.token is not None and not is_open and not self._may(headers):
            raise NoToken("give the token: 'Authorization: Bearer ...'")

    def _may(self, headers: dict[str, str]) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            try:
                cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
            except CookieError:
                cookie = None
            given = cookie.value if cookie is not None else ""
        return self.token is not None and same(given, self.token)


def same(given: str, token: str) -> bool:
    """Whether two tokens are equal, in a time that does not tell where they differ."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


def _name(host: str) -> str:
    if host.startswith("["):
        return host.split("]")[0] + "]"
    return host.rsplit(":", 1)[0].lower()


async def _refuse(error: ServiceError, send: Send) -> None:
    body = json.dumps({"error": str(error), "error_type": error.kind}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if error.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

"""What can go wrong with a request, each with its HTTP status."""

from __future__ import annotations

from typing import ClassVar


class ServiceError(Exception):
    """A request that cannot be served; becomes ``{"error": ..., "error_type": ...}``."""

    status: ClassVar[int] = 500
    kind: ClassVar[str] = "internal"

    def __init__(self, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class NoToken(ServiceError):
    status, kind = 401, "unauthorized"


class Forbidden(ServiceError):
    status, kind = 403, "forbidden"


class NotFound(ServiceError):
    status, kind = 404, "not_found"


class Conflict(ServiceError):
    status, kind = 409, "conflict"


class TooLarge(ServiceError):
    status, kind = 413, "too_large"


class NotAnImage(ServiceError):
    status, kind = 415, "unsupported_media_type"


class Invalid(ServiceError):
    status, kind = 422, "invalid"


class TooMany(ServiceError):
    status, kind = 429, "too_many_requests"


class NotReady(ServiceError):
    status, kind = 503, "unavailable"


class StorageError(NotReady):
    kind = "storage"

"""Test-time generalized category discovery.

Names are resolved on first use so that ``import ttgcd`` and ``ttgcd --help`` stay fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ttgcd.discovery import CategoryDiscovery, Discovery, discover, load
    from ttgcd.errors import InputError
    from ttgcd.methods.answer import Answer, Category
    from ttgcd.methods.base import Method, Task
    from ttgcd.methods.pact import Pact
    from ttgcd.service.client import AsyncClient, Client
    from ttgcd.vlm import load_vlm

__version__ = "0.1.0"

_HOMES = {
    "Answer": "ttgcd.methods.answer",
    "AsyncClient": "ttgcd.service.client",
    "Category": "ttgcd.methods.answer",
    "CategoryDiscovery": "ttgcd.discovery",
    "Client": "ttgcd.service.client",
    "Discovery": "ttgcd.discovery",
    "InputError": "ttgcd.errors",
    "Method": "ttgcd.methods.base",
    "Pact": "ttgcd.methods.pact",
    "Task": "ttgcd.methods.base",
    "discover": "ttgcd.discovery",
    "load": "ttgcd.discovery",
    "load_vlm": "ttgcd.vlm",
}

__all__ = [
    "Answer",
    "AsyncClient",
    "Category",
    "CategoryDiscovery",
    "Client",
    "Discovery",
    "InputError",
    "Method",
    "Pact",
    "Task",
    "discover",
    "load",
    "load_vlm",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'ttgcd' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

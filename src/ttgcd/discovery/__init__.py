"""The product: a source of images and a list of names in, known and discovered categories out.

Names are resolved on first use: reading settings must not wait for torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ttgcd.discovery.estimator import CategoryDiscovery
    from ttgcd.discovery.found import Discovery
    from ttgcd.discovery.run import discover, load, run_discovery
    from ttgcd.discovery.settings import Settings

__all__ = ["CategoryDiscovery", "Discovery", "Settings", "discover", "load", "run_discovery"]

_HOMES = {
    "CategoryDiscovery": "estimator",
    "Discovery": "found",
    "Settings": "settings",
    "discover": "run",
    "load": "run",
    "run_discovery": "run",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"ttgcd.discovery.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'ttgcd.discovery' has no attribute {name!r}")

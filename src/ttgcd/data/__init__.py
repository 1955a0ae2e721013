"""Package data: names, splits, published figures, experiments, the embedded model, IconShift."""

from __future__ import annotations

from pathlib import Path

_ROOT = Path(__file__).resolve().parent


def path(*parts: str) -> Path:
    """The path of a packaged data file, e.g. ``path("names", "cifar10.txt")``."""
    return _ROOT.joinpath(*parts)

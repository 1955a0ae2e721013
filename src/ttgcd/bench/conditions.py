"""Under what conditions rows were measured: one small file, named by its hash in every row."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("ttgcd", "numpy", "scipy", "scikit-learn", "torch", "transformers", "pillow")


def conditions(threads: int, device: str) -> dict[str, Any]:
    """Versions and hardware; nothing that changes from run to run on the same machine."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return {
        "python": sys.version.split()[0],
        "platform": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "threads": threads,
        "device": device,
        "versions": versions,
    }


def save_manifest(folder: Path, content: dict[str, Any]) -> str:
    """Write the conditions to ``manifests/<hash>.json`` and return the hash."""
    text = json.dumps(content, indent=2, sort_keys=True) + "\n"
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    path = folder / "manifests" / f"{name}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return name

"""Several streams at once (sites, cameras), each with a session of its own, on one pool."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ttgcd.discovery.engine import Engine
from ttgcd.discovery.found import Discovery
from ttgcd.discovery.inputs import prepare
from ttgcd.discovery.run import run_discovery
from ttgcd.discovery.settings import Settings
from ttgcd.errors import InputError
from ttgcd.streams.open import open_source


def discover_each(
    sources: Mapping[str, Any],
    *,
    out: str | Path = "ttgcd-out",
    workers: int | None = None,
    ray_address: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    **options: Any,
) -> dict[str, Discovery]:
    """Discover in every source by itself; its files are left in ``out/NAME``.

    ``options`` are the fields of ``Settings``: known names, number of novel ones, model, ...
    The sessions run side by side and share the workers, each of which holds the model once.
    """
    if not sources:
        raise InputError("no source: give at least one, under a name")
    for name in sources:
        if not name or Path(name).name != name:
            raise InputError(f"{name!r} cannot name a folder below `out=...`: use a plain name")
    settings = Settings(**options)
    opened = {name: open_source(source) for name, source in sources.items()}
    plan = Engine("ray", workers, ray_address)
    first = prepare(next(iter(opened.values())), settings)
    with plan.make_pool(first) as pool, ThreadPoolExecutor(len(opened)) as threads:
        engine = Engine("ray", pool=pool)
        running = {
            name: threads.submit(
                run_discovery,
                source,
                settings,
                out=Path(out) / name,
                engine=engine,
                resume=resume,
                overwrite=overwrite,
            )
            for name, source in opened.items()
        }
        return {name: future.result() for name, future in running.items()}

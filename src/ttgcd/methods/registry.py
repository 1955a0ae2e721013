"""Methods by name. Adding one touches one new file and one line here."""

from __future__ import annotations

from importlib import import_module, metadata
from typing import Any

from ttgcd.errors import InputError
from ttgcd.methods.base import Method

METHODS: dict[str, str] = {
    "scout": "ttgcd.methods.scout:Scout",
    "pact": "ttgcd.methods.pact:Pact",
    "tent++": "ttgcd.methods.tent:Tent",
    "batclip++": "ttgcd.methods.batclip:BatClip",
    "sat++": "ttgcd.methods.sat:Sat",
    "ostta++": "ttgcd.methods.ostta:Ostta",
    "unient++": "ttgcd.methods.unient:UniEnt",
    "simgcd++": "ttgcd.methods.simgcd:SimGcd",
    "hilo++": "ttgcd.methods.hilo:HiLo",
    "zero-shot": "ttgcd.methods.zero_shot:ZeroShot",
    "zero-shot+kmeans": "ttgcd.methods.zero_shot_kmeans:ZeroShotKMeans",
    "kmeans": "ttgcd.methods.kmeans:KMeans",
    "hdbscan": "ttgcd.methods.hdbscan:Hdbscan",
    "ss-kmeans": "ttgcd.methods.ss_kmeans:SemiSupervisedKMeans",
    "ttd": "ttgcd.methods.ttd:Ttd",
    "talon": "ttgcd.methods.talon:Talon",
}

#: Named configurations of a method, e.g. ``--preset paper``; methods without an entry have none.
PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "pact": {
        # The literal method.
        "paper": {},
        # Better seeds: greedy k-means++ and Lloyd steps on the buffer, the best of ten tries.
        "robust": {"seed_candidates": 5, "refine_iterations": 20, "seed_restarts": 10},
    },
}


def method_class(name: str) -> type[Method]:
    """The class behind a registered name, an entry point or ``module:Class``."""
    target = METHODS.get(name)
    if target is None and ":" in name:
        target = name
    if target is None:
        for point in metadata.entry_points(group="ttgcd.methods"):
            if point.name == name:
                target = point.value
    if target is None:
        known = ", ".join(sorted(METHODS))
        raise InputError(f"unknown method {name!r}: choose one of {known}, or give module:Class")
    module, _, attribute = target.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(f"method {name!r} cannot be imported from {target!r}: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Method)):
        raise InputError(f"method {name!r}: {target} is not a ttgcd.methods.base.Method")
    return found


def load_method(name: str, preset: str | None = None, **config: Any) -> Method:
    """A method with its configuration, e.g. ``load_method("pact", "paper", warmup=512)``."""
    cls = method_class(name)
    try:
        return cls(**{**preset_of(name, preset), **config})
    except TypeError as error:
        raise InputError(f"method {name!r}: {error}") from error


def preset_of(name: str, preset: str | None) -> dict[str, Any]:
    """The options behind a named configuration; none for no name."""
    presets = PRESETS.get(name, {})
    if preset is None:
        return {}
    if preset not in presets:
        choice = f"choose one of {', '.join(presets)}" if presets else "it has none"
        raise InputError(f"method {name!r} has no preset {preset!r}: {choice}")
    return presets[preset]

"""Methods by name. Adding one touches one new file and one line here."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module, metadata
from typing import Any, NamedTuple

from ttgcd.errors import InputError
from ttgcd.methods.base import Method
from ttgcd.methods.realign_first import RealignFirst
from ttgcd.methods.stage_one import Realignment

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


class Preset(NamedTuple):
    """A method under a named configuration."""

    method: str
    config: dict[str, Any]


PRESETS: dict[str, Preset] = {
    # What sorts best (docs/discovery.md).
    "scout": Preset("scout", {}),
    # The paper's method, to the letter.
    "paper": Preset("pact", {}),
    # The same with better seeds: greedy k-means++, Lloyd steps on the buffer, the best of ten.
    "robust": Preset("pact", {"seed_candidates": 5, "refine_iterations": 20, "seed_restarts": 10}),
}
DEFAULT_PRESET = "scout"


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


def load_method(
    name: str, *, realign: bool | Mapping[str, Any] | Realignment = False, **config: Any
) -> Method:
    """A method with its configuration, e.g. ``load_method("pact", warmup=512)``.

    With ``realign``, True or options of ``Realignment``, the encoder is re-aligned before a method
    that leaves it as it is: ``load_method("scout", realign={"epochs": 10})``.
    """
    cls = method_class(name)
    options = [field.name for field in fields(cls) if field.init]  # type: ignore[arg-type]
    for option in config:
        if option not in options:
            raise InputError(_unknown_option(name, option, options))
    method, stage = cls(**config), Realignment.of(realign)
    return method if stage is None else RealignFirst(method, stage)


def _unknown_option(name: str, option: str, options: list[str]) -> str:
    others = [
        preset
        for preset, (method, _) in PRESETS.items()
        if method != name and option in {field.name for field in fields(method_class(method))}  # type: ignore[arg-type]
    ]
    near = difflib.get_close_matches(option, options, 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    hint += f"`preset={others[0]}` has it" if others else f"it has {', '.join(options) or 'none'}"
    return f"method {name!r} has no option {option!r}: {hint}"


def load_preset(name: str, **changes: Any) -> Method:
    """A named configuration with single options changed: ``load_preset("paper", warmup=512)``."""
    preset = find_preset(name)
    return load_method(preset.method, **{**preset.config, **changes})


def find_preset(name: str) -> Preset:
    """The configuration behind a name."""
    if name not in PRESETS:
        raise InputError(f"unknown preset {name!r}: choose one of {', '.join(PRESETS)}")
    return PRESETS[name]

"""Everything a user can set for a discovery, checked before anything slow is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ttgcd.data.words import vocabulary as shipped_words
from ttgcd.discovery.review import check_abstain
from ttgcd.errors import InputError
from ttgcd.methods.base import (
    DEFAULT_TEMPLATES,
    Method,
    check_names_wanted,
    check_something_to_find,
)
from ttgcd.methods.registry import DEFAULT_PRESET, find_preset, load_method
from ttgcd.streams.labels import read_names
from ttgcd.vlm import DEFAULT as DEFAULT_MODEL
from ttgcd.vlm.anchors import check_names, check_templates
from ttgcd.vlm.precision import PRECISIONS


@dataclass(frozen=True)
class Settings:
    """What to look for and how.

    ``known`` and ``vocabulary`` take names, "cat,dog" or "@file"; without ``known`` everything is
    grouped; ``novel`` is a number or "auto";
    ``method`` is a registered name or ``module:Class``, ``preset`` a method under a named
    configuration; one of them may be given. ``changes`` are single fields of the configuration.
    ``shuffle`` reads in an order drawn from the seed, so that what comes first is like the rest;
    standard input keeps its own. ``precision`` "int8" encodes two to three times as fast on a CPU,
    "bf16" faster on a GPU, at a small loss of accuracy.
    Answers with a confidence below ``abstain`` go to a pile for review instead of a category.
    ``anchors``, ``word_embeddings`` (the vocabulary's) and ``logit_scale`` belong to sources that
    hold embeddings.
    """

    known: str | Sequence[str] | None = None
    novel: int | str = "auto"
    model: str = DEFAULT_MODEL
    device: str = "auto"
    templates: Sequence[str] = DEFAULT_TEMPLATES
    anchors: str | np.ndarray | None = None
    word_embeddings: str | np.ndarray | None = None
    logit_scale: float | None = None
    vocabulary: str | Sequence[str] | None = None
    labels: str | None = None
    abstain: float | None = None
    method: str | None = None
    preset: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    batch_size: int = 128
    seed: int = 0
    shuffle: bool = True
    threads: int | None = None
    precision: str = "fp32"

    def __post_init__(self) -> None:
        check_something_to_find(self.names(), self.novel_count())
        check_templates(self.templates)
        check_names_wanted(type(self.make_method()), self.names(), self._preset() or self.method)
        self.words()
        check_abstain(self.abstain)
        if self.logit_scale is not None and not 0 < self.logit_scale < np.inf:
            raise InputError(f"logit_scale must be above 0 (CLIP: 100), got {self.logit_scale}")
        for name, least in (("batch_size", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name} must be {least} or more, got {getattr(self, name)}")
        if self.threads is not None and self.threads < 1:
            raise InputError(f"threads must be 1 or more, got {self.threads}")
        if self.precision not in PRECISIONS:
            raise InputError(
                f"precision must be one of {', '.join(PRECISIONS)}, got {self.precision!r}"
            )

    def names(self) -> tuple[str, ...]:
        """The known names; none when none were given."""
        if self.known is None or (not isinstance(self.known, str) and not len(self.known)):
            return ()
        return check_names(read_names(self.known))

    def novel_count(self) -> int | None:
        """L, or None when it is to be estimated."""
        if self.novel == "auto":
            return None
        try:
            count = int(self.novel)
        except ValueError:
            raise InputError(
                f"the number of novel categories must be a whole number or auto, got {self.novel!r}"
            ) from None
        if count < 0:
            raise InputError(f"the number of novel categories must be 0 or more, got {count}")
        return count

    def make_method(self) -> Method:
        preset = self._preset()
        if preset is None:
            return load_method(self.method or "", **self.changes)
        chosen = find_preset(preset)
        return load_method(chosen.method, **{**chosen.config, **self.changes})

    def _preset(self) -> str | None:
        """The named configuration; None where a method was chosen without one."""
        if self.method is None:
            return self.preset or DEFAULT_PRESET
        if self.preset is not None and find_preset(self.preset).method != self.method:
            raise InputError(
                f"the preset {self.preset!r} is one of the method "
                f"{find_preset(self.preset).method!r}, not of {self.method!r}: give one of the two"
            )
        return self.preset

    def words(self) -> tuple[str, ...]:
        """The vocabulary for naming novel categories; empty when names are not wanted."""
        if self.vocabulary == "none":
            return ()
        if self.vocabulary is not None:
            return check_names(read_names(self.vocabulary))
        return shipped_words()

    def own_words(self) -> tuple[str, ...]:
        """The user's own vocabulary, if there is one."""
        return () if self.vocabulary in (None, "none") else self.words()

    def describe(self) -> dict[str, Any]:
        """The settings that decide the answers, as JSON."""
        return {
            "method": self.make_method().name if ":" not in (self.method or "") else self.method,
            "preset": self._preset(),
            "config": self.make_method().config(),
            "known": list(self.names()),
            "novel": self.novel_count() if self.novel_count() is not None else "auto",
            "model": None if self.anchors is not None else self.model,
            "templates": list(self.templates),
            "anchors": _told(self.anchors),
            "word_embeddings": _told(self.word_embeddings),
            "logit_scale": self.logit_scale,
            "batch_size": self.batch_size,
            "seed": self.seed,
            "shuffle": self.shuffle,
            "precision": self.precision,
            "abstain": self.abstain,
        }


def _told(given: str | np.ndarray | None) -> str | None:
    return given if isinstance(given, (str, type(None))) else "array"

"""A small world of classes with names: unit features around class means, texts near those means."""

from __future__ import annotations

import numpy as np

from ttgcd.prototypes.calibration import unit
from ttgcd.prototypes.text_evidence import Texts


def world(
    known: int, novel: int, each: int = 40, d: int = 48, noise: float = 1.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, Texts]:
    """Shuffled features, true classes (known first), and texts: the known names, and as words those
    of the novel classes and forty of things that do not occur."""
    rng = np.random.default_rng(seed)
    means = unit(rng.normal(size=(known + novel, d)))
    true = rng.permutation(np.repeat(np.arange(known + novel), each))
    rows = unit(means[true] + noise * unit(rng.normal(size=(len(true), d))) + 0.5)
    named = unit(means + 0.4 * unit(rng.normal(size=means.shape)))
    others = unit(rng.normal(size=(40, d)))
    return rows, true, Texts.of(named[:known], np.concatenate([named[known:], others]), 20.0)

"""What the default method is measured without: each ingredient, and how the code forgets it.

An ingredient is a list of names of modules or classes and what stands in their place; a name that
is gone is an error, not a measurement of nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any
from unittest.mock import patch

import numpy as np

from ttgcd.prototypes import census, partition, refit
from ttgcd.prototypes import starts as beginnings
from ttgcd.prototypes.calibration import Geometry, Standard
from ttgcd.prototypes.linear_model import Space
from ttgcd.prototypes.neighbourhood import Neighbourhood
from ttgcd.prototypes.partition import from_seeds
from ttgcd.prototypes.refit import Judge, Trust
from ttgcd.prototypes.spoken import Listener, Spoken
from ttgcd.prototypes.starts import Sample
from ttgcd.prototypes.text_evidence import CONFIDENT, Texts

Patch = tuple[Any, str, Any]  # of this module or class, this name, to this value
#: The arms of ``pack_arms`` on which an ingredient is measured.
TOLD, WITH_WORDS, COUNTED = ("told+words", "told"), ("told+words",), ("counted+words", "counted")
#: So little that it decides nothing, and yet more than none.
_HARDLY = 1e-9

_starts, _by_trees, _near = beginnings.starts, beginnings.by_trees, census._near
_cluster, _worth = Listener.cluster, Judge.worth
_silhouette, _standard = census.silhouette, Standard.of


@dataclass(frozen=True)
class Ingredient:
    """What is patched to leave it out, and on which arms that can change anything."""

    patches: tuple[Patch, ...]
    arms: tuple[str, ...] = TOLD
    #: Whether it says anything where no name is known.
    nameless: bool = False
    #: Whether it changes how far clusters bear the names out.
    trusts: bool = False


@contextmanager
def without(left_out: str) -> Iterator[None]:
    """The method as if an ingredient had never been thought of."""
    with ExitStack() as stack:
        for owner, name, value in INGREDIENTS[left_out].patches:
            stack.enter_context(patch.object(owner, name, value))
        yield


# -- where clustering begins -----------------------------------------------------------------------


def _no_start_at_words(
    sample: Sample, texts: Texts, restarts: int, words: bool, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    return _starts(sample, texts, restarts, False, rng)


def _tree(place: int, sample: Sample) -> Iterator[np.ndarray]:
    """One of the two trees, by its place."""
    return islice(_by_trees(sample), place, place + 1)


def _by_smoothed_rows(
    sample: Sample, n_known: int, restarts: int, rng: np.random.Generator, few: bool = False
) -> np.ndarray:
    known, sure, bonus, expected = sample.known, sample.sure, sample.bonus, sample.expected
    return from_seeds(sample.mapped, known, sure, bonus, n_known, expected, restarts, rng).labels


def _as_it_is(self: Neighbourhood, rows: np.ndarray) -> np.ndarray:
    return rows


# -- which start is kept ---------------------------------------------------------------------------


def _judge_without_names(
    plain: np.ndarray, some: np.ndarray, known: np.ndarray, sure: np.ndarray
) -> Judge:
    return Judge(plain, some, known, np.zeros_like(sure))


def _worth_without_words(self: Judge, found: Spoken, labels: np.ndarray | None = None) -> float:
    return _worth(self, replace(found, borne_out=1.0), labels)


# -- what texts decide -----------------------------------------------------------------------------


def _no_rounds(self: Listener, centres: np.ndarray) -> Spoken:
    """Novel categories choose no words; starts at words, and words in the features, stay."""
    none = Standard(
        *(part[:0] for part in (self.words.texts, self.words.mean, self.words.deviation))
    )
    return _cluster(replace(self, words=none), centres)


def _full_trust(rows: np.ndarray, space: Space, novel: int, seed: tuple[int, ...]) -> Trust:
    if not len(space.texts.anchors):
        return Trust(0.0, 0.0, None)
    return Trust(1.0, refit.TEXT_SHARE if len(space.texts.words) else 0.0, 1.0)


def _usual_share(known_share: float) -> float:
    return CONFIDENT


def _centred(rows: np.ndarray) -> Geometry:
    return Geometry(rows.mean(axis=0), np.eye(rows.shape[1], dtype=np.float32))


def _same_for_all(rows: np.ndarray, texts: np.ndarray, chunk: int = 1024) -> Standard:
    """Logits with one mean and one deviation for all texts."""
    own = _standard(rows, texts, chunk)
    if not len(texts):
        return own
    same = np.ones_like(own.mean)
    return Standard(texts, own.mean.mean() * same, own.deviation.mean() * same)


# -- the count -------------------------------------------------------------------------------------


def _flat(*_: Any) -> float:
    return 0.0


def _near_by_itself(rows: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """The silhouette is still asked about near rows."""
    with patch.object(census, "silhouette", _silhouette):
        return _near(rows, clusters)


def _never_near(rows: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    return np.zeros(len(clusters))


def _no_agreement(*_: Any) -> tuple[float, float]:
    return 0.0, 0.0


#: Geometry has all to say, however little near rises above its null.
_GEOMETRY_SPEAKS: tuple[Patch, ...] = ((census, "SILENT", -1.0), (census, "CLEAR", 0.0))


def _counted(*patches: Patch, nameless: bool = False) -> Ingredient:
    return Ingredient(patches, COUNTED, nameless)


def _of(function: Callable[..., Any]) -> Any:
    """In the place of a class method."""
    return staticmethod(function)


#: What is left out, one at a time; L is given, or (the arms ``COUNTED``) unknown.
INGREDIENTS: dict[str, Ingredient] = {
    "nothing": Ingredient((), (*TOLD, *COUNTED), nameless=True),
    "starts at words": Ingredient(((refit, "starts", _no_start_at_words),), WITH_WORDS),
    "average tree": Ingredient(((beginnings, "by_trees", partial(_tree, 1)),)),
    "Ward tree": Ingredient(((beginnings, "by_trees", partial(_tree, 0)),)),
    "graph's directions (seeds on smoothed rows)": Ingredient(
        ((beginnings, "by_graph", _by_smoothed_rows),)
    ),
    "names asked of row and neighbours (row alone)": Ingredient(
        ((Neighbourhood, "calm", _as_it_is),)
    ),
    "names in the judge": Ingredient(((refit, "Judge", _judge_without_names),)),
    "words in the judge": Ingredient(((Judge, "worth", _worth_without_words),), WITH_WORDS),
    "lead of the graph": Ingredient(((refit, "LEAD", 0.0),)),
    "words in the features": Ingredient(((refit, "TEXT_SHARE", _HARDLY),), WITH_WORDS),
    "bonus of names and words": Ingredient(((refit, "WEIGHT", _HARDLY),)),
    "words of the novel": Ingredient(((Listener, "cluster", _no_rounds),), WITH_WORDS),
    "half whitening (centred only)": Ingredient(((Geometry, "of", _of(_centred)),)),
    "standardised logits": Ingredient(((Standard, "of", _of(_same_for_all)),), trusts=True),
    "measured trust (full)": Ingredient(((refit, "_measure", _full_trust),)),
    "weight of samples by their texts": Ingredient(((partition, "SHARPNESS", 0.0),), trusts=True),
    "cap of the confident share": Ingredient(
        ((refit, "confident_share", _usual_share), (beginnings, "confident_share", _usual_share))
    ),
    "apart": _counted(
        (census, "silhouette", _flat), (census, "_near", _near_by_itself), nameless=True
    ),
    "near": _counted((census, "_near", _never_near), *_GEOMETRY_SPEAKS, nameless=True),
    "how far geometry may speak (fully)": _counted(*_GEOMETRY_SPEAKS),
    "names": _counted((census._Names, "agree", _no_agreement)),
    "words": Ingredient(((census._Speakers, "quality", _flat),), ("counted+words",)),
    "thinning": _counted((census, "SAME", 2.0), nameless=True),
    "nulls": _counted((census, "NULL", 0.0), (census, "NEAR_NULL_ALONE", 0.0), nameless=True),
}

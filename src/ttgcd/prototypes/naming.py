"""Words for novel categories: the vocabulary entries nearest to a prototype."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from ttgcd.prototypes.bank import normalise


def suggest_names(
    prototypes: np.ndarray,
    reference: np.ndarray,
    words: Sequence[str],
    word_embeddings: np.ndarray,
    exclude: Collection[str] = (),
    top: int = 3,
) -> list[list[str]]:
    """The ``top`` words for each prototype, best first.

    Both sides are centred before comparing, images on ``reference`` (all prototypes) and words on
    the vocabulary: the modality gap is a constant offset and would favour the same words always.
    """
    excluded = {name.casefold() for name in exclude}
    allowed = [i for i, word in enumerate(words) if word.casefold() not in excluded]
    if not allowed or len(prototypes) == 0:
        return [[] for _ in prototypes]
    images = normalise(prototypes - reference.mean(axis=0))
    texts = normalise(word_embeddings - word_embeddings.mean(axis=0))[allowed]
    order = np.argsort(-(images @ texts.T), axis=1, kind="stable")[:, :top]
    return [[words[allowed[i]] for i in row] for row in order]

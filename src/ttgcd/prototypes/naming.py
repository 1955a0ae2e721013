"""Words for novel categories: what the members of a group agree on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from ttgcd.prototypes.bank import normalise

#: How much a rare word must fit better than a common one, in standard deviations of the fit for
#: every factor e in rank; the first ``_COMMON`` words count as equally common. Both were chosen on
#: IconShift line, emoji and engraved (``benchmarks/names.py``).
_RARITY, _COMMON = 0.4, 500
#: Share of the members, the most typical ones, that have a vote.
_VOTERS = 0.7
#: A name is good when it is the first choice of this share of the voters.
_GOOD = 0.3


@dataclass(frozen=True)
class GroupNames:
    """Words for one group, best first; no other group has any of them that is a ``name``.

    ``scores`` is the share of voting members that have the word among their own five best;
    ``agreement`` the share that has the first word as its best. ``name`` is the first word when it
    is a good name, else None.
    """

    words: tuple[str, ...]
    scores: tuple[float, ...]
    agreement: float
    name: str | None


def name_groups(
    features: np.ndarray,
    groups: np.ndarray,
    wanted: Sequence[int],
    words: Sequence[str],
    word_embeddings: np.ndarray,
    *,
    exclude: Collection[str] = (),
    ranked: bool = True,
    top: int = 5,
) -> dict[int, GroupNames]:
    """Names for the groups ``wanted`` of a stream.

    ``features`` are unit rows of (a sample of) the whole stream, ``groups`` their group ids. The
    fit of word t to image v is (v - mean of all images) . t: what all images have in common, the
    modality gap among it, counts for no word, so that words which fit everything are discounted.
    It is measured in standard deviations, and rarer words (``ranked``: words come commonest first)
    have to fit better. The most typical members vote. Words in ``exclude`` are never suggested.
    """
    excluded = {name.casefold() for name in exclude}
    allowed = np.array(
        [i for i, word in enumerate(words) if word.casefold() not in excluded], np.int64
    )
    found = {group: GroupNames((), (), 0.0, None) for group in wanted}
    present = [group for group in wanted if (groups == group).any()]
    if not len(allowed) or not present:
        return found
    texts = word_embeddings[allowed].astype(np.float32)
    mean = features.mean(axis=0)
    rarity = _RARITY * np.log(allowed + _COMMON) if ranked else np.zeros(len(allowed))
    some = np.linspace(0, len(features) - 1, min(len(features), 1000)).astype(int)
    unit = float(((features[some] - mean) @ texts.T).std()) or 1.0
    fits, ballots = [], []
    for group in present:
        votes = (_voters(features[groups == group]) - mean) @ texts.T / unit - rarity
        fits.append(votes.mean(axis=0))
        ballots.append(np.argsort(-votes, axis=1, kind="stable")[:, :5])
    given = _one_each(np.stack(fits))
    best = [np.argsort(-fit, kind="stable")[:top] for fit in fits]
    good = [
        word in its and (votes[:, 0] == word).mean() >= _GOOD
        for word, its, votes in zip(given, best, ballots)
    ]
    taken = {word for word, is_good in zip(given, good) if is_good}
    for row, group in enumerate(present):
        own = [given[row]] if good[row] else []
        offered = [*own, *(word for word in best[row] if word not in taken)]
        scores = [float((ballots[row] == word).any(axis=1).mean()) for word in offered]
        first = ballots[row][:, 0]
        found[group] = GroupNames(
            words=tuple(words[allowed[word]] for word in offered),
            scores=tuple(scores),
            agreement=float((first == offered[0]).mean()) if offered else 0.0,
            name=words[allowed[given[row]]] if good[row] else None,
        )
    return found


def _voters(members: np.ndarray) -> np.ndarray:
    """The most typical members: those nearest to the mean direction."""
    count = max(min(3, len(members)), round(_VOTERS * len(members)))
    centre = normalise(members.mean(axis=0))
    return members[np.argsort(-(members @ centre), kind="stable")[:count]]


def _one_each(fits: np.ndarray) -> np.ndarray:
    """One word for each group, no word twice, best in sum (Hungarian); with fewer words than
    groups the rest gets its own best word, which others have too."""
    given = fits.argmax(axis=1)
    if len(np.unique(given)) == len(given):  # everybody's best word: no assignment is better
        return given
    from scipy.optimize import linear_sum_assignment  # slow to import: not before it is needed

    # Only words that are among the best of some group can be part of the best assignment.
    near = min(fits.shape[1], len(fits) + 1)
    columns = np.unique(np.argpartition(-fits, near - 1, axis=1)[:, :near])
    rows, chosen = linear_sum_assignment(-fits[:, columns])
    given[rows] = columns[chosen]
    return given

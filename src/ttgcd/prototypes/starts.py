"""Where clustering begins anew: partitions found in spaces in which neighbours have been heard.

Lloyd steps end in one of very many optima near where they begin. Each start is good at something:
the graph at classes of like size however they are shaped, trees at classes of unlike size (average)
and at many small ones (Ward), words at classes that they have a name for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ttgcd.prototypes.calibration import Standard
from ttgcd.prototypes.many import is_many
from ttgcd.prototypes.neighbourhood import Neighbourhood
from ttgcd.prototypes.partition import from_seeds, smooth
from ttgcd.prototypes.row_bonus import RowBonus
from ttgcd.prototypes.text_evidence import Texts, confident, confident_share
from ttgcd.prototypes.word_seeds import from_words

#: More samples are not put into a tree: its time and memory grow with their square.
MOST_IN_A_TREE = 6000
#: More categories are not looked for in the graph's directions: as many would be needed.
MOST_IN_A_GRAPH = 1000
#: With fewer samples a category neither a graph nor a tree has anything to say.
FEW = 3


@dataclass(frozen=True)
class Sample:
    """Rows to cluster: as they are, ``mapped`` to the space, with the ``bonus`` of every category,
    ``expected`` of a known class's usual member.

    ``known`` is the name that fits a row best, asked of the row and those next to it, and ``sure``
    the mask of those that are confidently of that class.
    """

    rows: np.ndarray
    mapped: np.ndarray
    bonus: RowBonus
    expected: float
    graph: Neighbourhood
    known: np.ndarray
    sure: np.ndarray

    @classmethod
    def of(
        cls,
        rows: np.ndarray,
        mapped: np.ndarray,
        bonus: RowBonus,
        expected: float,
        texts: Texts,
        member: np.ndarray | None = None,
    ) -> Sample:
        """``member`` is the class of rows that are known to be of it, else -1."""
        graph, n_known = Neighbourhood.of(mapped), len(texts.anchors)
        known, sure = np.zeros(len(rows), np.int64), np.zeros(len(rows), bool)
        if n_known:
            calm = graph.calm(rows)
            logits = Standard.of(calm, texts.anchors)(calm)
            known = logits.argmax(axis=1)
            share = confident_share(n_known / bonus.count)
            sure = confident(known, texts.gate(calm, logits), n_known, share)
        if member is not None:
            sure &= ~np.isin(known, member[member >= 0])
            known, sure = np.where(member >= 0, member, known), sure | (member >= 0)
        return cls(rows, mapped, bonus, expected, graph, known, sure)

    @property
    def count(self) -> int:
        """Categories, known ones included."""
        return self.bonus.count


def starts(
    sample: Sample, texts: Texts, restarts: int, words: bool, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Labels of the sample's rows, several times, the safest first; ``words`` may be asked where
    novel categories begin."""
    few = len(sample.rows) < FEW * sample.count
    yield by_graph(sample, len(texts.anchors), restarts, rng, few)
    if words and not is_many(sample.count):
        known, sure = sample.known, sample.sure
        bonus, expected = sample.bonus, sample.expected
        yield from_words(sample.rows, sample.mapped, texts, known, sure, bonus, expected, rng)
    if not few and len(sample.rows) <= MOST_IN_A_TREE:
        yield from by_trees(sample)


def by_graph(
    sample: Sample, n_known: int, restarts: int, rng: np.random.Generator, few: bool = False
) -> np.ndarray:
    """Labels from the leading directions of the graph, or from rows smoothed a little where they
    are ``few``: known centres at the confident samples, spread seeds for the others."""
    if few:
        space = smooth(sample.mapped)
    elif sample.count > MOST_IN_A_GRAPH:
        space = sample.graph.diffused(sample.mapped)
    else:
        space = sample.graph.directions(sample.count)
    known, sure, bonus, expected = sample.known, sample.sure, sample.bonus, sample.expected
    return from_seeds(space, known, sure, bonus, n_known, expected, restarts, rng, space).labels


def by_trees(sample: Sample) -> Iterator[np.ndarray]:
    """Labels from two trees over rows after diffusion, of average linkage and Ward's, known classes
    first."""
    # Slow to import: not before it is needed.
    from scipy.cluster.hierarchy import fcluster, linkage

    diffused = sample.graph.diffused(sample.mapped)
    for how in ("average", "ward"):
        labels = fcluster(linkage(diffused, how), sample.count, "maxclust") - 1
        yield known_first(labels, sample.known, sample.sure, sample.count)


def known_first(labels: np.ndarray, known: np.ndarray, keep: np.ndarray, count: int) -> np.ndarray:
    """The same clusters, numbered so that each known class has the cluster which has most of its
    confident samples and few of others (one Hungarian)."""
    from scipy.optimize import linear_sum_assignment

    shared = np.zeros((count, count))
    np.add.at(shared, (labels[keep], known[keep]), 1.0)
    shared /= np.sqrt(np.maximum(shared.sum(axis=1, keepdims=True), 1))
    rows, columns = linear_sum_assignment(-shared)
    number = np.empty(count, np.int64)
    number[rows] = columns
    return number[labels]

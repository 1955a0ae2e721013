"""Known and novel categories as prototypes in image space: Eq. 5 and Eq. 8-12."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def normalise(vectors: np.ndarray) -> np.ndarray:
    """Project rows onto the unit sphere; zero rows stay zero."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)


def weighted_sums(
    features: np.ndarray, labels: np.ndarray, weights: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sum of weights * features and sum of weights for each label 0..count-1."""
    present, sums = _sums_of(features, labels, weights, np.arange(len(labels)))
    every = np.zeros((count, features.shape[1]), np.float64)
    every[present] = sums
    return every, np.bincount(labels, weights, minlength=count)


def _sums_of(
    features: np.ndarray, labels: np.ndarray, weights: np.ndarray, samples: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The labels that occur, ascending, and their sums of weights * features[samples]."""
    import scipy.sparse as sparse

    order = np.argsort(labels, kind="stable")
    labels = labels[order]
    firsts = np.flatnonzero(labels[1:] != labels[:-1]) + 1
    begins = np.concatenate([[0], firsts]) if len(labels) else firsts
    chosen = sparse.csr_matrix(
        (weights[order], samples[order], np.append(begins, len(labels))),
        shape=(len(begins), len(features)),
    )
    return labels[begins], chosen @ features.astype(np.float64)


class PrototypeBank:
    """The state of the streaming stage.

    ``known`` (K, d) and ``novel`` (L, d) are unit rows, zero where a known class has no support
    yet; ``evidence`` is e_k. A known class takes part in assignments once its evidence reaches
    ``evidence_min``. ``prototypes`` are all rows in one array, which ``update`` changes in place.
    """

    def __init__(
        self, known: np.ndarray, evidence: np.ndarray, novel: np.ndarray, evidence_min: float
    ) -> None:
        self.prototypes = np.concatenate([known, novel], dtype=np.float32)
        self.evidence, self.evidence_min = evidence, evidence_min

    @property
    def known(self) -> np.ndarray:
        return self.prototypes[: len(self.evidence)]

    @property
    def novel(self) -> np.ndarray:
        return self.prototypes[len(self.evidence) :]

    @novel.setter
    def novel(self, rows: np.ndarray) -> None:
        self.prototypes = np.concatenate([self.known, rows], dtype=np.float32)

    @classmethod
    def from_buffer(
        cls,
        features: np.ndarray,
        labels: np.ndarray,
        margins: np.ndarray,
        n_known: int,
        evidence_min: float,
    ) -> PrototypeBank:
        """Known prototypes and evidence from the buffer (Eq. 5); no novel ones yet."""
        sums, evidence = weighted_sums(features, labels, margins, n_known)
        known = normalise(sums).astype(np.float32)
        novel = np.zeros((0, features.shape[1]), np.float32)
        return cls(known, evidence, novel, evidence_min)

    @property
    def active(self) -> np.ndarray:
        """Mask of the known classes in A = {k : e_k >= e_min}."""
        return (self.evidence >= self.evidence_min) & self.known.any(axis=1)

    def similarities(self, features: np.ndarray) -> np.ndarray:
        """Cosine to every prototype, -inf for inactive known classes (Eq. 8)."""
        cosines = features @ self.prototypes.T
        active = self.active
        if not active.all():
            cosines[:, : len(active)][:, ~active] = -np.inf
        return cosines

    def update(
        self,
        features: np.ndarray,
        labels: np.ndarray,
        margins: np.ndarray,
        categories: np.ndarray,
        known_rate: float,
        novel_rate: float,
        update_known: bool = True,
        named: Sequence[int] = (),
    ) -> None:
        """Learn from a batch after it was assigned.

        Known classes move towards the margin-weighted mean direction of the samples that the text
        anchors give them (Eq. 10) and gain their margins as evidence (Eq. 12); novel ones move
        towards the mean direction of the samples assigned to them (Eq. 11). Unsupported
        prototypes stay. A known class without a prototype starts at its first mean direction,
        which is Eq. 10 from the zero vector.

        ``named`` are places of novel prototypes that have got a name: the labels from K on are
        theirs, in this order, and they move as known classes do (Eq. 10).
        """
        n_known, every = len(self.evidence), np.arange(len(labels))
        by_text = np.arange(len(self.prototypes)) < n_known  # those that move by Eq. 10
        if named:
            places = n_known + np.array(named, np.int64)
            by_text[places] = True
            labels = np.concatenate([np.arange(n_known), places])[labels]
        told = every if update_known else every[labels >= n_known]
        own = every[~by_text[categories]]
        present, sums = _sums_of(
            features,
            np.concatenate([labels[told], categories[own]]),
            np.concatenate([margins[told], np.ones(len(own))]),
            np.concatenate([told, own]),
        )
        self._move(present, sums, np.where(by_text[present], known_rate, novel_rate))
        if update_known:
            gained = np.bincount(labels, margins, minlength=n_known)
            self.evidence = self.evidence + gained[:n_known]

    def _move(self, rows: np.ndarray, sums: np.ndarray, rates: np.ndarray) -> None:
        """normalise((1 - rate) * prototype + rate * normalise(sum)) where a sum is not zero."""
        lengths = np.sqrt(np.einsum("kd,kd->k", sums, sums))
        some = lengths > 0
        if not some.all():
            rows, sums, lengths, rates = rows[some], sums[some], lengths[some], rates[some]
        sums *= (rates / lengths)[:, None]
        sums += (1.0 - rates).astype(np.float32)[:, None] * self.prototypes[rows]
        lengths = np.sqrt(np.einsum("kd,kd->k", sums, sums))
        lengths[lengths == 0] = 1.0
        self.prototypes[rows] = np.divide(sums, lengths[:, None], out=sums)

    def merged(self, copies: Sequence[PrototypeBank]) -> PrototypeBank:
        """One bank from copies of this one that have learned from different samples.

        A prototype becomes the mean direction of the copies that moved it, evidence gains what
        all of them gained (Eq. 12 is a sum, so that part is exact).
        """

        def meet(here: np.ndarray, there: list[np.ndarray]) -> np.ndarray:
            moved = [np.any(other != here, axis=1, keepdims=True) for other in there]
            parts = [np.where(m, other.astype(np.float64), 0) for m, other in zip(moved, there)]
            mean = normalise(np.sum(parts, axis=0))
            return np.where(np.any(moved, axis=0), mean, here).astype(np.float32)

        finite = np.isfinite(self.evidence)
        start = np.where(finite, self.evidence, 0.0)
        gained = sum(np.where(finite, copy.evidence, 0.0) - start for copy in copies)
        return PrototypeBank(
            meet(self.known, [copy.known for copy in copies]),
            np.where(finite, start + gained, self.evidence),
            meet(self.novel, [copy.novel for copy in copies]),
            self.evidence_min,
        )

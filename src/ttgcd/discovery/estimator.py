"""scikit-learn's way in: discovery over embeddings as an estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ttgcd.discovery.levels import Level, LevelName
from ttgcd.engines.features import FeaturesInMemory
from ttgcd.engines.local import Collector
from ttgcd.engines.session import Session
from ttgcd.errors import InputError
from ttgcd.methods.base import Method, Task
from ttgcd.methods.registry import DEFAULT_PRESET, load_method, load_preset
from ttgcd.prototypes.bank import normalise
from ttgcd.streams.base import Batch

#: Rows that are put on the unit sphere at once.
_BLOCK = 16_384


class CategoryDiscovery(ClusterMixin, BaseEstimator):
    """Known classes by their text anchors, novel categories by grouping, over embeddings.

    Rows are put on the unit sphere. Without anchors no class is known and all rows are grouped; a
    ``method`` or ``preset`` that needs names then says so.

    Parameters
    ----------
    anchors : array of shape (n_known, n_features), optional
        Text embeddings of the known classes, made with the model that made the rows.
    word_embeddings : array of shape (n_words, n_features), optional
        Text embeddings of nouns that novel categories may be, made with the same model.
    n_novel : int or "auto"
        The number of novel categories; of groups, where no class is known.
    preset : str, optional
        A named configuration; None takes the default one.
    method : str, optional
        A registered method instead of a preset.
    options : dict, optional
        Single options of the method.
    names : sequence of str, optional
        Names of the known classes.
    batch_size : int
        Samples that are answered together.
    logit_scale : float
        Inverse temperature of the text logits: 100 for CLIP.
    random_state : int
        The seed.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Category of every row of the last ``fit``, or of all ``partial_fit`` calls so far.
    categories_ : list of Category
        Typed records, by id.
    n_features_in_ : int
        Width of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(4, 8), 50, axis=0) + 0.05 * rng.normal(size=(200, 8))
    >>> rng.shuffle(X)
    >>> estimator = CategoryDiscovery(anchors=np.eye(2, 8), n_novel=2, preset="paper")
    >>> len(set(estimator.fit_predict(X).tolist()))
    4
    """

    def __init__(
        self,
        anchors: np.ndarray | None = None,
        n_novel: int | str = "auto",
        *,
        word_embeddings: np.ndarray | None = None,
        preset: str | None = None,
        method: str | None = None,
        options: dict[str, Any] | None = None,
        names: tuple[str, ...] | None = None,
        batch_size: int = 128,
        logit_scale: float = 100.0,
        random_state: int = 0,
    ) -> None:
        self.anchors = anchors
        self.n_novel = n_novel
        self.word_embeddings = word_embeddings
        self.preset = preset
        self.method = method
        self.options = options
        self.names = names
        self.batch_size = batch_size
        self.logit_scale = logit_scale
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> CategoryDiscovery:
        """Discover in all rows; ``y`` is ignored."""
        rows = self._rows(X, reset=True)
        self._begin(rows)
        self._push(rows)
        return self._finish()

    def partial_fit(self, X: Any, y: Any = None) -> CategoryDiscovery:
        """Go on with further rows; ``labels_`` holds the answers so far."""
        first = not hasattr(self, "_session")
        rows = self._rows(X, reset=first)
        if first:
            self._begin(rows)
        self._push(rows)
        return self._answered()

    def predict(self, X: Any) -> np.ndarray:
        """Categories of rows, without learning from them."""
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        return self._session.predict(_batch(rows, 0)).category.copy()

    def fit_predict(self, X: Any, y: Any = None, **options: Any) -> np.ndarray:
        """Discover in all rows, and their categories."""
        return self.fit(X, y).labels_

    def at(self, level: LevelName) -> Level:
        """Coarser or finer groups of the rows in ``labels_``: "coarse", "found", "fine" or how
        many groups; nested, and without fitting again."""
        check_is_fitted(self)
        from ttgcd.discovery.level_files import in_memory

        features = [self._features.array()]
        features += [p.features for p in self._session.waiting() if p.features is not None]
        records = [category.as_json() for category in self.categories_]
        curve = self._session.method.count_curve()
        return in_memory(np.concatenate(features), self.labels_, records, curve).at(level)

    # -- inside -------------------------------------------------------------------------------

    def _rows(self, X: Any, reset: bool) -> np.ndarray:
        given = validate_data(self, X, reset=reset, dtype=[np.float64, np.float32])
        rows = np.empty(given.shape, np.float32)
        for start in range(0, len(rows), _BLOCK):  # in pieces: float64 takes twice the memory
            part = given[start : start + _BLOCK].astype(np.float64)
            rows[start : start + _BLOCK] = normalise(part)
        return rows

    def _begin(self, rows: np.ndarray) -> None:
        width = rows.shape[1]
        anchors = np.zeros((0, width), np.float32)
        if self.anchors is not None:
            anchors = _texts("anchors", self.anchors, width)
        words = self.word_embeddings
        names = self.names or tuple(f"class {k}" for k in range(len(anchors)))
        task = Task(
            known=tuple(names),
            anchors=anchors,
            word_embeddings=None if words is None else _texts("word_embeddings", words, width),
            novel=_count(self.n_novel),
            logit_scale=self.logit_scale,
            seed=self.random_state,
        )
        self._collector, self._features = Collector(), FeaturesInMemory()
        self._session = Session(
            self._method(),
            task,
            [self._collector, self._features],
            batch_size=self.batch_size,
            store=self._features,
        )
        self._arrived = 0

    def _method(self) -> Method:
        options = self.options or {}
        if self.method is not None:
            return load_method(self.method, **options)
        return load_preset(self.preset or DEFAULT_PRESET, **options)

    def _push(self, rows: np.ndarray) -> None:
        self._session.push(_batch(rows, self._arrived))
        self._arrived += len(rows)

    def _finish(self) -> CategoryDiscovery:
        self._session.finish()
        return self._answered()

    def _answered(self) -> CategoryDiscovery:
        """What was said so far; rows of a batch that is not whole are answered provisionally."""
        answered = self._collector.result().category
        waiting = [part.features for part in self._session.waiting() if part.features is not None]
        if waiting:
            rest = self._session.predict(_batch(np.concatenate(waiting), len(answered)))
            answered = np.concatenate([answered, rest.category])
        self.labels_ = answered
        self.categories_ = self._session.method.categories()
        return self


def _texts(name: str, given: np.ndarray, width: int) -> np.ndarray:
    """Unit rows of text embeddings, as wide as the features."""
    texts = np.asarray(given, np.float64)
    if texts.ndim != 2 or texts.shape[1] != width:
        raise InputError(f"{name} have shape {texts.shape}, the rows {width} features")
    return normalise(texts).astype(np.float32)


def _count(novel: int | str) -> int | None:
    if novel == "auto":
        return None
    if isinstance(novel, (int, np.integer)) and not isinstance(novel, bool) and novel >= 0:
        return int(novel)
    raise InputError(f"n_novel must be a whole number of 0 or more, or 'auto', got {novel!r}")


def _batch(rows: np.ndarray, start: int) -> Batch:
    numbers = range(start, start + len(rows))
    return Batch(tuple(map(str, numbers)), start, tuple(numbers), start + len(rows), features=rows)

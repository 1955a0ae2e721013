"""Score a run's ``assignments.parquet`` against a file of labels."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ttgcd.errors import InputError
from ttgcd.evaluation.scores import Scores, score_stream
from ttgcd.streams.labels import read_labels


@dataclass(frozen=True)
class Evaluation:
    """Scores of a run, and what could not be scored."""

    scores: Scores
    known: tuple[str, ...]
    novel: tuple[str, ...]  # labels in the file that are not among the known names
    unlabelled: int  # samples of the run without a label
    unassigned: int  # labels without a sample in the run
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """Percent; null where a metric is not defined."""
        percent = {
            key: None if value != value else round(value, 6)
            for key, value in self.scores.as_percent().items()
        }
        return {
            **percent,
            "known_classes": len(self.known),
            "novel_classes": len(self.novel),
            "unlabelled": self.unlabelled,
            "unassigned": self.unassigned,
            "notes": list(self.notes),
        }


def evaluate_files(
    assignments: str | Path, labels: str | Path, known: Sequence[str] | None = None
) -> Evaluation:
    """Score ``assignments`` (a parquet file or a run's folder) against a CSV of ``id,label``.

    ``known`` lists the known class names; a run's folder remembers them by itself.
    """
    parquet, remembered = _locate(Path(assignments))
    names = list(known) if known is not None else remembered
    if names is None:
        raise InputError(
            f"{parquet}: which classes are known? Give them as `known=a,b` or `known=@names.txt`"
        )
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"known class {twice!r} is listed twice")
    table, truth = _read_assignments(parquet), read_labels(labels)
    common = [row for row, sample in enumerate(table["id"]) if sample in truth]
    if not common:
        raise InputError(
            f"{labels}: no id of the labels is in {parquet.name}: labels have ids like "
            f"{next(iter(truth))!r}, the run has ids like {table['id'][0]!r}"
        )
    labels_of = [truth[table["id"][row]] for row in common]
    novel = sorted(set(labels_of) - set(names))
    true_id = {name: index for index, name in enumerate([*names, *novel])}
    predicted = _category_ids(table, names, parquet)[common]
    novelty = _novelty(table)
    scores = score_stream(
        predicted,
        np.array([true_id[label] for label in labels_of]),
        len(names),
        None if novelty is None else novelty[common],
    )
    return Evaluation(
        scores=scores,
        known=tuple(names),
        novel=tuple(novel),
        unlabelled=len(table["id"]) - len(common),
        unassigned=len(truth) - len(common),
        notes=tuple(_suspicions(names, novel)),
    )


def _locate(path: Path) -> tuple[Path, list[str] | None]:
    """The parquet file, and the known names if the path is a run's folder that remembers them."""
    if not path.exists():
        raise InputError(
            f"{path}: no such file or folder; give assignments.parquet or a run folder"
        )
    if not path.is_dir():
        return path, None
    parquet = path / "assignments.parquet"
    if not parquet.exists():
        raise InputError(f"{path}: no assignments.parquet in this folder; is it a run's output?")
    try:
        categories = json.loads((path / "categories.json").read_text(encoding="utf-8"))
        if isinstance(categories, dict):
            categories = categories["categories"]
        rows = sorted((c for c in categories if c["kind"] == "known"), key=lambda c: c["id"])
    except (OSError, ValueError, KeyError, TypeError):
        return parquet, None  # a broken or absent file only means that --known must be given
    return parquet, [str(row["name"]) for row in rows]


def _read_assignments(parquet: Path) -> dict[str, list]:
    import pyarrow
    import pyarrow.parquet

    wanted = ("id", "category", "kind", "name", "margin", "novelty")
    try:
        table = pyarrow.parquet.read_table(parquet)
        there = table.column_names
        columns = {name: table.column(name).to_pylist() for name in wanted if name in there}
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        # ValueError: in a damaged file text, even the name of a column, may not be UTF-8.
        reason = " ".join(str(error).split())
        raise InputError(f"{parquet}: not a readable parquet file ({reason})") from error
    missing = {"id", "category"} - set(there)
    if missing:
        raise InputError(f"{parquet}: column {sorted(missing)[0]!r} is missing")
    if not columns["id"]:
        raise InputError(f"{parquet}: holds no assignment")
    columns["id"] = [str(sample) for sample in columns["id"]]
    twice = [sample for sample, times in Counter(columns["id"]).items() if times > 1]
    if twice:
        raise InputError(f"{parquet}: id {twice[0]!r} occurs twice; one row a sample is expected")
    return columns


def _category_ids(table: dict[str, list], known: Sequence[str], parquet: Path) -> np.ndarray:
    """Ids in the layout of ``known``: by name where the run wrote names, otherwise as they are.

    Going by name keeps the known classes right when the list here is in another order than the
    run's.
    """
    category = np.array(table["category"], dtype=np.int64)
    if "kind" not in table or "name" not in table:
        return category
    index = {name: k for k, name in enumerate(known)}
    ids = np.empty(len(category), dtype=np.int64)
    novel = sorted({int(c) for c, kind in zip(category, table["kind"]) if kind != "known"})
    groups = {group: len(known) + place for place, group in enumerate(novel)}
    for row, (kind, name) in enumerate(zip(table["kind"], table["name"])):
        if kind == "known":
            if name not in index:
                raise InputError(
                    f"{parquet}: the run knows a class {name!r} that is not among the names given; "
                    "give the list the run was made with"
                )
            ids[row] = index[name]
        else:
            ids[row] = groups[int(category[row])]
    return ids


def _novelty(table: dict[str, list]) -> np.ndarray | None:
    """A score that grows with novelty: the run's own, else one minus the known-class margin."""
    for column, sign in (("novelty", 1.0), ("margin", -1.0)):
        values = np.array(table.get(column, []), dtype=np.float64)
        # A constant column is a method's way of saying that it has no such score.
        if len(values) and np.isfinite(values).all() and np.ptp(values) > 0:
            return sign * values
    return None


def _suspicions(known: Sequence[str], novel: Sequence[str]) -> list[str]:
    def plain(name: str) -> str:
        return name.strip().lower().replace("_", " ").replace("-", " ")

    by_plain = {plain(name): name for name in known}
    return [
        f"label {label!r} is counted as novel though {by_plain[plain(label)]!r} is known"
        for label in novel
        if plain(label) in by_plain
    ]

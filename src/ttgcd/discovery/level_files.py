"""Levels in a run's folder: columns of the table, ``categories.json``, ``state/levels.npz``.

The parts are found once, when a run ends, from the features that it kept; whatever is said of a
level later is read off them. After an edit an image keeps its part as long as that is one of the
category that the image is in.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ttgcd.discovery.insight import kept_features
from ttgcd.discovery.levels import Level, LevelName, Levels, check_level
from ttgcd.discovery.review import UNSURE
from ttgcd.engines.features import KeptFeatures
from ttgcd.engines.in_order import in_order
from ttgcd.engines.table import add_columns, with_columns
from ttgcd.errors import InputError
from ttgcd.prototypes.curve import Curve, landmarks
from ttgcd.prototypes.levels import finer
from ttgcd.prototypes.parts import FIRST_PART_ID, Looks, Parts, find_parts, nearest_parts, part_id
from ttgcd.storage.durable import write_atomic, writing

if TYPE_CHECKING:
    import pyarrow

NAME = "levels.npz"
ROWS, CATEGORIES = "assignments.parquet", "categories.json"
#: Samples whose mean is taken for that of all, spread evenly over the stream.
_FOR_THE_MEAN = 8_192
#: Rows whose part is looked for together.
_AT_ONCE = 4_096
#: Samples that show how a category looks which an edit made.
_SHOWN = 256

Records = list[dict[str, Any]]


def add_levels(
    out: Path, categories: Records, curve: Curve | None, shown: LevelName | None
) -> tuple[dict[str, Any] | None, list[str]]:
    """Work out the levels of a run that has just ended and put them into its files.

    The records get their ``parent``. Returns what ``categories.json`` says of the levels, None for
    a run that kept no features, and notes for the user.
    """
    import pyarrow.parquet as pq

    category = pq.read_table(out / ROWS, columns=["category"]).column("category").to_numpy()
    hills = [] if curve is None else landmarks(curve)
    made = _made(out, category, hills)
    if made is None:
        lost = shown not in (None, "found")
        return None, ["this run kept no features: it has no level but the found one"] * lost
    looks, parts, part = made
    _save(out, looks, parts)
    levels = Levels(category, part, parts, categories, hills)
    notes = [note] if (note := levels.hills_note()) else []
    if shown is not None and check_level(shown) not in ("coarse", "found", "fine"):
        most = levels.finest
        if int(shown) > most:
            notes.append(f"{shown} groups are more than can be told apart here: these are {most}")
            shown = most
    columns = _columns(levels)

    def stretch(begin: int, group: pyarrow.Table) -> dict[str, pyarrow.Array]:
        return {name: make(slice(begin, begin + group.num_rows)) for name, make in columns.items()}

    add_columns(out / ROWS, _kinds(), stretch)
    return _described(levels, categories, shown), notes


def follow_levels(
    out: Path,
    own: pyarrow.Table,
    table: pyarrow.Table,
    categories: Records,
    said: Mapping[str, Any] | None,
) -> tuple[pyarrow.Table, dict[str, Any] | None]:
    """The levels after edits: ``own`` are the run's own rows, ``table`` and ``categories`` those
    with the edits, which get their columns and parents; ``said`` what was said of the levels."""
    if said is None or "fine" not in own.column_names:
        return table, None
    levels = _followed(out, own, table, categories, said["hills"])
    columns = {name: make(slice(None)) for name, make in _columns(levels).items()}
    shown = said.get("shown")
    if isinstance(shown, int):
        shown = min(shown, levels.finest)
    return with_columns(table, _kinds(), columns), _described(levels, categories, shown)


def levels_of(out: Path, own: pyarrow.Table) -> Levels:
    """The levels of the run in a folder; ``own`` are its own rows, without edits."""
    import pyarrow.parquet as pq

    try:
        content = json.loads((out / CATEGORIES).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {str(out / CATEGORIES)!r}: {error}") from None
    said = content.get("levels") or {"hills": []}
    table = pq.read_table(out / ROWS, columns=["category"])
    return _followed(out, own, table, content["categories"], said["hills"])


def table_at(table: pyarrow.Table, level: Level) -> pyarrow.Table:
    """The rows of a run with category, kind and name of their groups at a level; what was found
    stands in ``found`` and ``found_name``."""
    import pyarrow as pa

    ids = np.array([group.id for group in level.groups], np.int64)
    order = np.argsort(ids)
    at = pa.array(order[np.searchsorted(ids[order], level.labels)])
    values = {
        "found": table.column("category").combine_chunks(),
        "found_name": table.column("name").combine_chunks(),
        "category": pa.array(level.labels),
        "kind": pa.array([group.kind for group in level.groups], pa.string()).take(at),
        "name": pa.array([group.name for group in level.groups], pa.string()).take(at),
    }
    ints, strings = pa.int32(), pa.string()
    kinds = {"found": ints, "found_name": strings, "category": ints, "kind": strings}
    return with_columns(table, {**kinds, "name": strings}, values)


def in_memory(
    features: np.ndarray, category: np.ndarray, categories: Records, curve: Curve | None
) -> Levels:
    """The levels of samples whose features are at hand."""
    hills = [] if curve is None else landmarks(curve)
    _, parts, part = _worked_out(features, category, hills)
    return Levels(category, part, parts, categories, hills)


# -- inside ---------------------------------------------------------------------------------------

Rows = KeptFeatures | np.ndarray


def _made(
    out: Path, category: np.ndarray, hills: Sequence[int]
) -> tuple[Looks, Parts, np.ndarray] | None:
    features = kept_features(out, len(category))
    return None if features is None else _worked_out(features, category, hills)


def _worked_out(
    features: Rows, category: np.ndarray, hills: Sequence[int]
) -> tuple[Looks, Parts, np.ndarray]:
    """The space, the parts, and the place of every sample's part."""
    some = np.linspace(0, len(features) - 1, min(len(features), _FOR_THE_MEAN)).astype(np.int64)
    looks = Looks.of(np.asarray(features[some], np.float32))
    present = np.unique(category)
    present = present[present != UNSURE]
    parts = find_parts(
        lambda places: looks(features[places]), category, present, finer(len(present), hills)
    )
    place = _places(looks, parts, features, category)
    # A part that is nearest to nobody is none.
    there = np.bincount(place[place >= 0], minlength=len(parts)) > 0
    number = np.cumsum(there) - 1
    kept = parts.at(np.flatnonzero(there))
    first = np.searchsorted(kept.category, kept.category)
    kept = Parts(part_id(kept.category, np.arange(len(kept)) - first), kept.category, kept.centres)
    return looks, kept, np.where(place >= 0, number[place], -1)


def _places(looks: Looks, parts: Parts, features: Rows, category: np.ndarray) -> np.ndarray:
    """The place of the nearest part of its category for every sample, block by block."""

    def block(begin: int) -> np.ndarray:
        rows = slice(begin, begin + _AT_ONCE)
        return nearest_parts(parts, looks(features[rows]), category[rows])

    blocks = in_order(block, range(0, len(category), _AT_ONCE))
    return np.concatenate([np.zeros(0, np.int64), *blocks])


def _followed(
    out: Path,
    own: pyarrow.Table,
    table: pyarrow.Table,
    categories: Records,
    hills: Sequence[int],
) -> Levels:
    """From the parts of the run's own rows to those of the rows as they are now."""
    before = own.column("category").to_numpy()
    category = table.column("category").to_numpy()
    kept = _load(out)
    if kept is None or "fine" not in own.column_names:  # made before there were levels, or live
        made = _made(out, before, hills)
        if made is None:
            raise InputError("this run kept no features: it has no level but the found one")
        looks, parts, place = made
    else:
        looks, parts = kept
        place = _read_places(parts, own.column("fine").to_numpy())
    into = {c["id"]: c["merged_into"] for c in categories if c.get("merged_into") is not None}
    parts = Parts(parts.ids, _owners(parts.category, into), parts.centres)
    lost = np.flatnonzero((place < 0) | (parts.category[place] != category))
    lost = lost[category[lost] != UNSURE]
    place = np.where(category == UNSURE, -1, place)
    if len(lost):
        parts, place = _housed(out, looks, parts, place, category, lost)
    return Levels(category, place, parts, categories, hills)


def _owners(category: np.ndarray, into: Mapping[int, int]) -> np.ndarray:
    """The category that each one stands for now."""
    owner = {}
    for c in np.unique(category).tolist():
        now, seen = c, set()
        while now in into and now not in seen:
            seen.add(now)
            now = into[now]
        owner[c] = now
    return np.array([owner[c] for c in category.tolist()], np.int64)


def _housed(
    out: Path,
    looks: Looks,
    parts: Parts,
    place: np.ndarray,
    category: np.ndarray,
    lost: np.ndarray,
) -> tuple[Parts, np.ndarray]:
    """Samples that have come to another category get the nearest of its parts; a category without
    any is one part."""
    features = kept_features(out, len(category))
    if features is None:
        raise InputError(f"{str(out)!r} has lost its features: it has no level but the found one")
    ids = np.where(place >= 0, parts.ids[place], -1)
    new = np.setdiff1d(category[lost], parts.category)
    if len(new):
        centres = []
        for c in new:
            members = lost[category[lost] == c]
            some = members[np.linspace(0, len(members) - 1, min(len(members), _SHOWN)).astype(int)]
            centres.append(looks(features[some]).mean(axis=0))
        parts = parts.with_more(Parts.whole(new, np.stack(centres)))
    place = np.where(ids >= 0, np.searchsorted(parts.ids, ids), -1)
    for begin in range(0, len(lost), _AT_ONCE):
        rows = lost[begin : begin + _AT_ONCE]
        place[rows] = nearest_parts(parts, looks(features[rows]), category[rows])
    return parts, place


def _read_places(parts: Parts, fine: np.ndarray) -> np.ndarray:
    """Places of the parts that the column ``fine`` of a run's own rows names: a category that is
    one part stands there under its own id."""
    ids = np.where(fine < FIRST_PART_ID, part_id(fine), fine)
    place = np.minimum(np.searchsorted(parts.ids, ids), max(0, len(parts) - 1))
    return np.where(parts.ids[place] == ids, place, -1) if len(parts) else place - 1


def _kinds() -> dict[str, Any]:
    import pyarrow as pa

    ints, strings = pa.int32(), pa.string()
    return {"coarse": ints, "coarse_name": strings, "fine": ints, "fine_name": strings}


def _columns(levels: Levels) -> dict[str, Callable[[slice], pyarrow.Array]]:
    """Ids and names of the coarse and the fine groups of some rows."""
    made: dict[str, Callable[[slice], pyarrow.Array]] = {}
    for name in ("coarse", "fine"):
        level = levels.at(name)
        made[name] = partial(_ids, level)
        made[f"{name}_name"] = partial(_names, level, {g.id: g.name for g in level.groups})
    return made


def _ids(level: Level, rows: slice) -> pyarrow.Array:
    import pyarrow as pa

    return pa.array(level.labels[rows])


def _names(level: Level, by_id: Mapping[int, str], rows: slice) -> pyarrow.Array:
    import pyarrow as pa

    ids, at = np.unique(level.labels[rows], return_inverse=True)
    return pa.array([by_id[i] for i in ids.tolist()], pa.string()).take(pa.array(at.ravel()))


def _described(levels: Levels, categories: Records, shown: LevelName | None) -> dict[str, Any]:
    """What categories.json says of the levels; the records get their parents."""
    parents = levels.parents()
    for record in categories:
        record.pop("parent", None)
        if record["id"] in parents:
            record["parent"] = parents[record["id"]]
    names: list[LevelName] = ["coarse", "fine"]
    if isinstance(check_level(shown), int):
        names.append(str(shown))
    said: dict[str, Any] = {"found": levels.found, "hills": list(levels.hills)}
    if (note := levels.hills_note()) is not None:
        said["note"] = note
    if shown is not None:
        said["shown"] = check_level(shown)
    for name in names:
        level = levels.at(name)
        # A category that is a group of its own has its own record.
        own = {record["id"] for record in categories}
        said[str(name)] = {
            "count": levels.number(name),
            "groups": [group.as_json() for group in level.groups if group.id not in own],
        }
    return said


def _save(out: Path, looks: Looks, parts: Parts) -> None:
    buffer = io.BytesIO()
    np.savez(
        buffer,
        mean=looks.mean,
        ids=parts.ids,
        category=parts.category,
        centres=parts.centres.astype(np.float32),
    )
    with writing(out):
        write_atomic(out / "state" / NAME, buffer.getvalue())


def _load(out: Path) -> tuple[Looks, Parts] | None:
    """The parts that a run found; None where there are none."""
    path = out / "state" / NAME
    try:
        with np.load(path, allow_pickle=False) as kept:
            parts = Parts(kept["ids"], kept["category"], kept["centres"])
            return Looks(kept["mean"]), parts
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{str(path)!r} is damaged: {error}") from None

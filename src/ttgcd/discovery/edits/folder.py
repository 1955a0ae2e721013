"""Edits of a run's folder: the log, and the files that follow it.

``state/unedited/`` keeps the run's own rows and categories from the first edit on;
``assignments.parquet`` and ``categories.json`` are those with the log replayed. An edit is made
when its line is in the log; files that a crash left behind are put right when somebody looks next.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ttgcd.discovery.edits.evidence import Evidence
from ttgcd.discovery.edits.log import NAME, EditLog, active, to_redo, to_undo
from ttgcd.discovery.edits.naming import find_category, told
from ttgcd.discovery.edits.records import Edit, read_edits
from ttgcd.discovery.edits.replay import Replayed, apply
from ttgcd.discovery.insight import kept_features
from ttgcd.discovery.level_files import follow_levels
from ttgcd.engines.output import OutputFolder
from ttgcd.errors import InputError
from ttgcd.prototypes.teaching import two_halves
from ttgcd.report import write_report
from ttgcd.storage.durable import write_atomic, writing
from ttgcd.storage.state_files import load_values

if TYPE_CHECKING:
    import pyarrow

ROWS, CATEGORIES, REPORT = "assignments.parquet", "categories.json", "report.html"
_ROWS_PER_GROUP = 65_536
#: Settings that give no id another meaning.
_NO_MATTER = ("input", "abstain", "novel", "earlier")


class EditedFolder:
    """A finished run's folder that can be edited.

    >>> EditedFolder("no such folder")
    Traceback (most recent call last):
    ...
    ttgcd.errors.InputError: 'no such folder' holds no finished run: give the `out=...` of one
    """

    def __init__(self, out: str | Path, finished: bool = True) -> None:
        self.out = Path(out)
        self._folder = OutputFolder(self.out)
        if finished and self._folder.standing() != "finished":
            raise InputError(f"{str(out)!r} holds no finished run: give the `out=...` of one")
        self._unedited = self._folder.state / "unedited"

    def _log(self) -> EditLog:
        return EditLog(self.out / NAME, run_key(self.out))

    # -- looking ------------------------------------------------------------------------------

    def log(self) -> list[Edit]:
        """All edits, undos and redos included, in the order they were made."""
        return self._log().edits

    def replayed(self) -> Replayed:
        """The result with all edits, from the run's own answers."""
        return self._replay(self._log().edits)

    def told(self) -> list[str]:
        """Every edit of the log in words, categories by the names they had."""
        return told(self.log(), self._own_categories())

    def unapplied(self) -> dict[int, str]:
        """Edits that no longer apply, by number, with the reason."""
        return self.replayed().unapplied

    def own_rows(self) -> pyarrow.Table:
        """The run's own answers, without edits."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return pq.read_table(io.BytesIO(self._original(ROWS)))
        except (pa.ArrowException, ValueError) as error:
            raise InputError(f"{ROWS} of {str(self.out)!r} is damaged: {error}") from None

    # -- editing ------------------------------------------------------------------------------

    def edit(self, *edits: Edit) -> Replayed:
        """Make edits, all or none: an InputError and nothing changed when one cannot be made."""
        with self._writing() as log:
            numbered = [
                _numbered(edit, number) for number, edit in enumerate(edits, len(log.edits) + 1)
            ]
            for place, edit in enumerate(numbered):
                if edit.op == "split":
                    _check_split(edit, self._replay([*log.edits, *numbered[:place]]))
            after = self._replay([*log.edits, *numbered])
            for edit in numbered:
                if edit.number in after.unapplied:
                    raise InputError(after.unapplied[edit.number])
            return self._commit(log, edits, after)

    def undo(self, target: int | None = None) -> Edit:
        """Take back the last edit in force, or edit number ``target``."""
        with self._writing() as log:
            return self._take_back(log, to_undo(log.edits, target))

    def redo(self, target: int | None = None) -> Edit:
        """Make an undone edit count again: the last undone one, or edit number ``target``."""
        with self._writing() as log:
            return self._take_back(log, to_redo(log.edits, target))

    def apply_file(self, path: str | Path) -> Replayed:
        """Make the edits of a JSON file, the report page's download, all or none."""
        return self.edit(*read_edits(path))

    def category(self, said: int | str) -> int:
        """The id of a category by its name, as it is shown, or by its id."""
        return said if isinstance(said, int) else find_category(said, self.replayed().categories)

    def in_two(self, category: int) -> Edit:
        """The split of a category into its two halves, by what its images look like."""
        now = self.replayed()
        rows = np.flatnonzero(now.assignments.column("category").to_numpy() == category)
        features = kept_features(self.out, now.assignments.num_rows)
        if features is None:
            raise InputError("this run kept no features: pick the images to split off")
        half = two_halves(features[rows]) if len(rows) > 1 else np.zeros(0, bool)
        if not half.any():
            raise InputError(f"category {category} has no two halves to split")
        ids = now.assignments.column("id").take(rows[half]).to_pylist()
        return Edit("split", category=category, images=tuple(ids))

    def known_class(self, name: str) -> int:
        """The id of a known class, by its name or by its number as text."""
        known = [c for c in self.replayed().categories if c["kind"] == "known"]
        for record in known:
            if record["name"].casefold() == name.casefold() or str(record["id"]) == name:
                return int(record["id"])
        if not known:
            raise InputError(
                f"no known class {name!r}: this run knows none; give a group its name with rename, "
                "and bring two together with merge"
            )
        raise InputError(
            f"no known class {name!r}: it is one of {', '.join(c['name'] for c in known)}; "
            "give a new category its name with rename"
        )

    def follow(self) -> bool:
        """Put files right that a crash left behind the log; whether there was anything to do."""
        if self._up_to_date(self._log()):
            return False
        with self._writing():
            return True

    def adopt(self) -> Replayed | None:
        """The run has just written its own files anew (``finished`` was False): keep them, and
        replay the log on them."""
        log = self._log()
        if not log.edits:
            return None
        if log.run != run_key(self.out):
            # A run with other settings: its ids mean other things, so the edits cannot be its own.
            os.replace(log.path, free_name(log.path))
            return None
        self._keep(anew=True)
        return self._write(log, self._replay(log.edits))

    # -- inside -------------------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[EditLog]:
        with self._folder.held():
            log = self._log()
            if log.edits and not self._up_to_date(log):
                self._write(log, self._replay(log.edits))
            yield log

    def _take_back(self, log: EditLog, edit: Edit) -> Edit:
        made = _numbered(edit, len(log.edits) + 1)
        self._commit(log, [edit], self._replay([*log.edits, made]))
        return next(e for e in log.edits if e.number == edit.target)

    def _commit(self, log: EditLog, edits: Sequence[Edit], after: Replayed) -> Replayed:
        self._keep()
        log.append(edits)
        return self._write(log, after)

    def _keep(self, anew: bool = False) -> None:
        """Keep the run's own files before the first edit changes them."""
        with writing(self.out, "then edit again"):
            self._unedited.mkdir(exist_ok=True)
            for name in (ROWS, CATEGORIES, REPORT):
                here, kept = self.out / name, self._unedited / name
                if here.exists() and (anew or not kept.exists()):
                    write_atomic(kept, here.read_bytes())

    def _original(self, name: str) -> bytes:
        kept = self._unedited / name
        try:
            return (kept if kept.exists() else self.out / name).read_bytes()
        except OSError as error:
            raise InputError(f"cannot read {str(kept)!r}: {error.strerror}") from None

    def _own_categories(self) -> list[dict[str, Any]]:
        try:
            found: list[dict[str, Any]] = json.loads(self._original(CATEGORIES))["categories"]
            return found
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{CATEGORIES} of {str(self.out)!r} is damaged: {error}") from None

    def _replay(self, edits: Sequence[Edit]) -> Replayed:
        rows = self.own_rows()
        categories = self._own_categories()
        features = kept_features(self.out, rows.num_rows)
        earlier = Evidence.load(self._folder.state)
        return apply(edits, rows, categories, features, self._log().carried, earlier)

    def _write(self, log: EditLog, after: Replayed) -> Replayed:
        with writing(self.out, "then edit again"):
            if not active(log.edits):
                for name in (ROWS, CATEGORIES, REPORT):
                    if (self._unedited / name).exists():
                        write_atomic(self.out / name, self._original(name))
            else:
                head = json.loads(self._original(CATEGORIES))
                table, levels = self._with_levels(after, head)
                write_atomic(self.out / ROWS, parquet_bytes(table))
                head["categories"] = after.categories
                head |= {} if levels is None else {"levels": levels}
                text = json.dumps(head, indent=2, ensure_ascii=False, allow_nan=False)
                write_atomic(self.out / CATEGORIES, (text + "\n").encode())
                if (self._unedited / REPORT).exists():
                    write_report(self.out)
            write_atomic(self._unedited / "follows.json", json.dumps({"sha": log.seal}).encode())
        return after

    def _with_levels(
        self, after: Replayed, head: dict[str, Any]
    ) -> tuple[pyarrow.Table, dict[str, Any] | None]:
        """The table with the columns of the levels, and what is said of them in ``head``'s file."""
        return follow_levels(
            self.out, self.own_rows(), after.assignments, after.categories, head.get("levels")
        )

    def table(self) -> pyarrow.Table:
        """The table as the log makes it of the run's own rows, worked out anew."""
        return self._with_levels(self.replayed(), json.loads(self._original(CATEGORIES)))[0]

    def _up_to_date(self, log: EditLog) -> bool:
        try:
            record = json.loads((self._unedited / "follows.json").read_bytes())
            return bool(record["sha"] == log.seal)
        except (OSError, ValueError, KeyError, TypeError):
            return not log.edits


def run_key(out: Path) -> str:
    """What the ids of the run in a folder depend on; empty where there is none."""
    try:
        return key_of(load_values(out / "state").get("settings", {}))
    except InputError:
        return ""


def key_of(settings: Mapping[str, Any]) -> str:
    """What a run's ids depend on, in 16 digits: its settings without the input."""
    deciding = {key: value for key, value in settings.items() if key not in _NO_MATTER}
    text = json.dumps(deciding, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def free_name(path: Path) -> Path:
    number = 1
    while (place := path.with_name(f"{path.stem}-{number}{path.suffix}")).exists():
        number += 1
    return place


def parquet_bytes(table: Any) -> bytes:
    """A table as the run writes it."""
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", row_group_size=_ROWS_PER_GROUP)
    return buffer.getvalue()


def _check_split(edit: Edit, before: Replayed) -> None:
    """A split takes images of its category, as people see it before the split, and leaves some."""
    by_id = {record["id"]: record for record in before.categories}
    category = edit.category
    while category in by_id and by_id[category].get("merged_into") is not None:
        category = by_id[category]["merged_into"]
    ids = before.assignments.column("id").to_pylist()
    given = before.assignments.column("category").to_pylist()
    members = {name for name, its in zip(ids, given) if its == category}
    strangers = [image for image in edit.images if image not in members]
    if strangers and strangers[0] in set(ids):
        raise InputError(
            f"image {strangers[0]!r} is not in category {category}: split takes images of the "
            "category that is split"
        )
    if members and members <= set(edit.images):
        raise InputError(
            f"these are all images of category {category}: nothing is left to split from"
        )


def _numbered(edit: Edit, number: int) -> Edit:
    from dataclasses import replace

    return replace(edit, number=number)

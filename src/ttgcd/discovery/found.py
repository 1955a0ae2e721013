"""What a discovery found: categories, rows, files, and what can be done with them later."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ttgcd import wording
from ttgcd.discovery.edits.verbs import Editable
from ttgcd.discovery.levels import Level, LevelName, Levels
from ttgcd.errors import InputError
from ttgcd.methods.answer import Category
from ttgcd.report.verdict import Judgement
from ttgcd.wording import counted

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from ttgcd.discovery.saved import SavedRun
    from ttgcd.streams.open import Spec

ROWS, CATEGORIES, RUN, REPORT = "assignments.parquet", "categories.json", "run.json", "report.html"


class Discovery(Editable):
    """A finished discovery.

    Attributes
    ----------
    out
        The folder with its files; None when none was asked for. They then live in a temporary
        folder that goes away with this object; ``save`` keeps them.
    categories
        Typed records, in the order of their ids.
    samples, rejected
        How many samples were answered, how many were set aside.
    scores
        Clustering accuracies in percent, when labels were given.
    notes
        What the run wants its user to know.
    verdict
        Whether the result can be used, in a sentence, with what to do; None where a run has none.
    """

    def __init__(
        self, folder: Path, temporary: tempfile.TemporaryDirectory[str] | None = None
    ) -> None:
        record = read_json(folder / RUN)
        self._folder = folder
        self._temporary = temporary
        self.out: Path | None = None if temporary is not None else folder
        self.samples: int = record["samples"]
        self.rejected: int = record["rejected"]
        self.scores: dict[str, Any] | None = record["scores"]
        self.notes: list[str] = list(record["notes"])
        said = record.get("verdict")
        self.verdict: Judgement | None = None if said is None else Judgement.from_json(said)
        self._saved: SavedRun | None = None

    @property
    def categories(self) -> tuple[Category, ...]:
        records = read_json(self._folder / CATEGORIES)["categories"]
        return tuple(Category.from_json(record) for record in records)

    # -- rows ---------------------------------------------------------------------------------

    def at(self, level: LevelName) -> Level:
        """Coarser or finer groups of the same run: "coarse", "found", "fine" or how many.

        Levels are nested: coarse groups are categories put together, fine ones are parts of a
        category. No image is read again.
        """
        return self._levels().at(level)

    def to_arrow(self, level: LevelName | None = None) -> pyarrow.Table:
        """One row a sample, in stream order (the columns of ``assignments.parquet``).

        At a ``level``, category, kind and name are those of the groups there, and what was found
        stands in ``found`` and ``found_name``.
        """
        import pyarrow.parquet as pq

        from ttgcd.discovery.level_files import table_at

        table = pq.read_table(self._folder / ROWS)
        return table if level is None else table_at(table, self.at(level))

    def to_pandas(self, level: LevelName | None = None) -> pandas.DataFrame:
        """The same as a data frame; needs pandas."""
        try:
            import pandas  # noqa: F401 - pyarrow's own message does not say how to get it
        except ImportError:
            raise InputError("to_pandas needs pandas: pip install pandas") from None
        return self.to_arrow(level).to_pandas()

    def assignments(self, level: LevelName | None = None) -> list[dict[str, Any]]:
        """The same as a list of records."""
        return self.to_arrow(level).to_pylist()

    # -- files --------------------------------------------------------------------------------

    def report(self) -> Path:
        """The page to look at."""
        return self._folder / REPORT

    def save(self, out: str | Path) -> Discovery:
        """Keep all files in a folder that does not exist yet; the discovery that lives there."""
        place = Path(out)
        if place.exists():
            raise InputError(f"{str(out)!r} exists: choose another folder")
        try:
            shutil.copytree(self._folder, place)
        except OSError as error:
            shutil.rmtree(place, ignore_errors=True)
            raise InputError(f"cannot write to {str(out)!r}: {error}") from None
        return Discovery(place)

    # -- later --------------------------------------------------------------------------------

    def predict(self, images: Spec) -> pyarrow.Table:
        """Assign further images to what was found, without learning from them.

        Columns: id, category, kind, name, score, margin, novelty, confidence. Corrections reach
        these images, too. What cannot be read is left out.
        """
        return self._later().predict(images).table

    def update(self, images: Spec, out: str | Path | None = None) -> Discovery:
        """Go on with further images: they are answered and learned from. Ids stay what they are.

        Returns the discovery of those images; this one stays as it is.
        """
        from ttgcd.discovery.run import go_on

        return go_on(self._folder, images, out=out)

    def _later(self) -> SavedRun:
        if self._saved is None:
            from ttgcd.discovery.saved import SavedRun

            self._saved = SavedRun(self._folder)
        return self._saved

    def _levels(self) -> Levels:
        from ttgcd.discovery.edits.folder import EditedFolder
        from ttgcd.discovery.level_files import levels_of

        return levels_of(self._folder, EditedFolder(self._folder).own_rows())

    # -- words --------------------------------------------------------------------------------

    def __repr__(self) -> str:
        novel = sum(c.kind == "novel" and c.count > 0 for c in self.categories)
        where = "" if self.out is None else f", out={str(self.out)!r}"
        return f"Discovery({self.samples} samples, {wording.found(novel, self._names())}{where})"

    def _names(self) -> bool:
        """Whether any class was known by name when the run began."""
        return bool(read_json(self._folder / RUN)["settings"]["known"])

    def text(self, level: LevelName | None = None) -> str:
        """A summary for people; of the ``level`` that the run was asked to show, or of this one."""
        levels = read_json(self._folder / CATEGORIES).get("levels")
        level = (levels or {}).get("shown") if level is None else level
        found = [c for c in self.categories if c.count]
        novel = [c for c in found if c.kind == "novel"]
        known = [c for c in found if c.kind == "known"]
        unsure = sum(c.count for c in found if c.kind == "unsure")
        lines = [] if self.verdict is None else [self.verdict.text()]
        lines += [f"note: {note}" for note in self.notes]
        total, names = counted(self.samples, "sample"), self._names()
        said = f"{total} in {wording.found(len(novel), known=False)}"
        if names or known:
            others = counted(len(novel), "novel one" if names else "group")
            said = (
                f"{total}: {sum(c.count for c in known):,} in "
                f"{counted(len(known), 'known class', 'known classes')}, "
                f"{sum(c.count for c in novel):,} in {others}"
            )
        lines.append(
            said
            + (f"; {unsure:,} to review (review.csv)" if unsure else "")
            + (f"; {self.rejected:,} set aside (rejected.csv)" if self.rejected else "")
        )
        lines += _listed(novel) if level is None else self.at(level).text().split("\n")
        lines += _other_levels(levels, level)
        if self.scores is not None:
            shown = "   ".join(
                f"{label} {'n/a' if self.scores[key] is None else format(self.scores[key], '.1f')}"
                for label, key in (("All", "all"), ("Known", "known"), ("Novel", "novel"))
                if names or key == "all"
            )
            lines.append(f"Clustering accuracy, percent: {shown}")
        lines.append(f"report: {self.report()}")
        return "\n".join(lines)


def _listed(novel: Iterable[Category], most: int = 10) -> list[str]:
    ordered = sorted(novel, key=lambda c: -c.count)
    lines = []
    for category in ordered[:most]:
        guess = f"  ({category.good_name}?)" if category.good_name else ""
        lines.append(f"  {category.name:<9} {category.count:>6,}  id {category.id}{guess}")
    if len(ordered) > most:
        lines.append(f"  ... and {len(ordered) - most} more")
    return lines


def _other_levels(levels: dict[str, Any] | None, shown: LevelName | None) -> list[str]:
    """Which other levels the run has."""
    if levels is None:
        return []
    numbers = {"coarse": levels["coarse"]["count"], "found": levels["found"]}
    numbers["fine"] = levels["fine"]["count"]
    of_shown = shown if isinstance(shown, int) else numbers.get(shown or "found")
    others = [f"{n:,} {name}" for name, n in numbers.items() if n != of_shown]
    if not others:
        return []
    return [f"other levels: {', '.join(others)} (`level=...` of export, `at` in Python)"]


def read_json(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"{str(path.parent)!r} holds no finished run: {path.name}: {error.strerror}"
        ) from None
    except ValueError as error:
        raise InputError(f"{str(path)!r} is damaged: {error}") from None

"""The verbs of a discovery with which people put it right; files and report follow at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ttgcd.discovery.edits.folder import EditedFolder
    from ttgcd.discovery.edits.records import Edit
    from ttgcd.discovery.export import Exported


class Editable:
    """A finished run that can be edited. Every edit is logged, survives the next run, and can be
    undone; images that look like a corrected one follow it. A category is said by its name, as it
    is shown ("novel 9"), or by its id."""

    _folder: Path

    def rename(self, category: int | str, name: str) -> None:
        """Give a novel category its name."""
        self._edit({"op": "rename", "category": category, "name": name})

    def merge(self, category: int | str, into: int | str) -> None:
        """Put a novel category into another; its id stays an alias of that one."""
        self._edit({"op": "merge", "category": category, "into": into})

    def split(
        self, category: int | str, images: Sequence[str] = (), name: str | None = None
    ) -> int:
        """Make a new category of some images of one, or of its smaller half when none are given.

        Returns the new category's id.
        """
        folder = self._editing()
        picked = tuple(images) or folder.in_two(folder.category(category)).images
        self._edit({"op": "split", "category": category, "images": list(picked), "name": name})
        from ttgcd.discovery.edits.replay import FIRST_SPLIT_ID

        return FIRST_SPLIT_ID + folder.log()[-1].number

    def move(self, images: Sequence[str], into: int | str) -> None:
        """Move images into a category; the one they are in confirms them."""
        self._edit({"op": "move", "images": list(images), "into": into})

    def hide(self, category: int | str) -> None:
        """Put a category out of sight: it is left out of the report and of exports."""
        self._edit({"op": "hide", "category": category})

    def mark(self, category: int | str, known: int | str) -> None:
        """Say that a novel category is one of the known classes, by its name or id."""
        into = known if isinstance(known, int) else self._editing().known_class(known)
        self._edit({"op": "mark", "category": category, "into": into})

    def undo(self, number: int | None = None) -> Edit:
        """Take back the last edit in force, or edit ``number``; the edit that was taken back."""
        return self._editing().undo(number)

    def redo(self, number: int | None = None) -> Edit:
        """Make an undone edit count again."""
        return self._editing().redo(number)

    def edits(self) -> list[Edit]:
        """The log: every edit, undos and redos included, in the order they were made."""
        return self._editing().log()

    def unapplied(self) -> dict[int, str]:
        """Edits that no longer apply, by number, with the reason; they are kept."""
        return self._editing().unapplied()

    def export(
        self, to: str, target: str | Path | None = None, source: str | Path | None = None
    ) -> Exported:
        """Write the result for another tool: folders, csv, imagefolder, labelstudio, xmp or
        webdataset. ``ttgcd.discovery.export.export`` has more options."""
        from ttgcd.discovery.export import export

        return export(self._folder, to, target, source)

    def _editing(self) -> EditedFolder:
        from ttgcd.discovery.edits.folder import EditedFolder

        return EditedFolder(self._folder)

    def _edit(self, said: dict[str, object]) -> None:
        from ttgcd.discovery.edits.records import parse

        folder = self._editing()
        for field in ("category", "into"):
            if isinstance(its := said.get(field), str):
                said[field] = folder.category(its)
        folder.edit(parse({k: v for k, v in said.items() if v is not None}, "edit"))

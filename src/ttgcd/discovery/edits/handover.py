"""Edits go along to a run that goes on from an edited one: the log, and the evidence behind it."""

from __future__ import annotations

import os
from pathlib import Path

from ttgcd.discovery.edits.evidence import MOST_SAMPLES, Evidence
from ttgcd.discovery.edits.folder import EditedFolder, free_name, run_key
from ttgcd.discovery.edits.log import NAME, EditLog
from ttgcd.discovery.insight import kept_features
from ttgcd.engines.output import OutputFolder
from ttgcd.errors import InputError
from ttgcd.storage.durable import writing


def check_handover(out: Path, to: Path, key: str) -> None:
    """Refuse a target whose own edits were made on top of other edits than ``out`` has now.

    ``key`` is the run key (``key_of``) that the run in ``to`` is going to have.
    """
    there = EditLog(to / NAME)
    own = len(there.edits) - there.carried
    if there.run == key and own and there.edits[: there.carried] != EditLog(out / NAME).edits:
        raise InputError(
            f"{str(to)!r} has edits of its own, and those of {str(out)!r} have changed since it "
            "went on from there: choose another `out=...`"
        )


def carry_over(out: Path, to: Path) -> None:
    """Take the edits of one run along to another that goes on from it, before it has finished.

    It can be done again after a crash: edits that are there already are not doubled.
    """
    edits, key = EditLog(out / NAME).edits, run_key(to)
    there = EditLog(to / NAME)
    with writing(to):
        if there.edits and there.run != key:
            os.replace(there.path, free_name(there.path))
        elif there.edits and len(there.edits) == there.carried and there.edits != edits:
            os.unlink(there.path)  # nothing but a copy, and an old one
        if not edits:
            return
        if not there.path.exists():
            EditLog(to / NAME, key, carried=len(edits)).append(edits)
        evidence = gather(out)
        if evidence is not None:
            evidence.save(OutputFolder(to).state)


def gather(out: Path) -> Evidence | None:
    """What the next run has to know of this one's images, and of those before them."""
    log, rows = EditLog(out / NAME), EditedFolder(out).own_rows()
    features = kept_features(out, rows.num_rows)
    if features is None:
        return None
    category = rows.column("category").to_numpy()
    own = Evidence.of_run(
        rows.column("id").to_pylist(), category, features, (log.carried, len(log.edits))
    )
    before = Evidence.load(OutputFolder(out).state)
    if before is None:
        return own.handed_on(log.edits, MOST_SAMPLES)
    half = MOST_SAMPLES // 2
    return before.handed_on(log.edits, half).with_more(own.handed_on(log.edits, half))

"""Random edits, undos, redos and resumed runs, killed wherever they are: no edit lost or doubled.

Every step is a real ``ttgcd`` command in a child that may die before or after any call that changes
the disk. A command that ended well is acknowledged: its edit must be in the log for ever. One that
was killed may be in the log once or not at all. At the end the files must be what the log says, and
the undo of everything must give the first files back byte for byte.
"""

from __future__ import annotations

import random
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from faults.kills import start, wait, warm_up
from faults.world import Case

_FILES = ("assignments.parquet", "categories.json", "report.html")
_SPLIT = 1_000_000


@dataclass
class Edits:
    """What the sequences have done."""

    sequences: int = 0
    steps: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    refused: int = 0
    lost: int = 0
    doubled: int = 0
    other_bytes: int = 0
    failed: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def bad(self) -> int:
        return self.lost + self.doubled + self.other_bytes + self.failed

    def lines(self) -> Iterator[str]:
        made = ", ".join(f"{count} {name}" for name, count in sorted(self.steps.items()))
        yield (
            f"edits: {self.sequences} sequences, {self.kills} SIGKILLs, {self.refused} refused "
            f"commands: {self.lost} edits lost, {self.doubled} doubled, {self.other_bytes} files "
            f"with other bytes, {self.failed} failed"
        )
        yield f"       made: {made}"
        yield from (f"       {example}" for example in self.examples[:10])

    def fault(self, kind: str, what: str) -> None:
        setattr(self, kind, getattr(self, kind) + 1)
        self.examples.append(f"{kind}: {what}")


def campaign(
    case: Case,
    sequences: int,
    work: Path,
    seed: int = 0,
    tell: Callable[[str], None] = lambda line: None,
) -> Edits:
    """``sequences`` random sequences on copies of one finished run."""
    warm_up()
    result, rng = Edits(), random.Random(seed)
    run = work / "edited-run"
    if wait(start(case.command(run, "--overwrite"), work / "log", every=1)):
        raise RuntimeError(f"the undisturbed run failed: {_said(work)}")
    _import_all(run, work)
    for number in range(sequences):
        out = work / "edited"
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(run, out)
        _sequence(case, run, out, work, rng, result)
        result.sequences += 1
        if (number + 1) % 100 == 0:
            tell(f"{number + 1} sequences of edits, {result.kills} kills, {result.bad} faults")
    return result


def _import_all(run: Path, work: Path) -> None:
    """One edit here, so that no child has to import what an edit needs."""
    import ttgcd.cli.edit
    from ttgcd.discovery.edits import Edit, EditedFolder

    out = work / "edited"
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(run, out)
    folder = EditedFolder(out)
    folder.edit(Edit("hide", category=8))
    folder.edit(folder.in_two(9))
    assert ttgcd.cli.edit


def _sequence(
    case: Case, run: Path, out: Path, work: Path, rng: random.Random, result: Edits
) -> None:
    from ttgcd.discovery.edits import EditedFolder
    from ttgcd.errors import InputError

    folder = EditedFolder(out)
    ids = folder.replayed().assignments.column("id").to_pylist()
    for _ in range(rng.randint(2, 7)):
        before = [edit.text() for edit in folder.log()]
        if rng.random() < 0.08:
            _go_on(case, out, before, work, rng, result)
            continue
        step, command = _step(case, out, ids, rng)
        dies = rng.randint(1, 40) if rng.random() < 0.4 else None
        code = wait(start(command, work / "log", die_at=dies, after=rng.random() < 0.5))
        try:
            after = [edit.text() for edit in folder.log()]
        except InputError as error:
            result.fault("failed", str(error))
            return
        if after[: len(before)] != before:
            result.fault("lost", f"{before} became {after}")
        more = len(after) - len(before)
        if code == -signal.SIGKILL:
            result.kills += 1
            if more > 1:
                result.fault("doubled", f"{step}: {after}")
        elif code == 2:
            result.refused += 1
            if more:
                result.fault("failed", f"{step} was refused but made")
        elif code:
            result.fault("failed", f"{step}: code {code}: {_said(work)}")
        elif more != (0 if step == "resume" else 1):
            result.fault("lost" if more == 0 else "doubled", f"{step}: {after}")
        if more == 1 or (step == "resume" and code == 0):
            result.steps[step] += 1
    _end(run, out, result)


def _go_on(
    case: Case, out: Path, edits: list[str], work: Path, rng: random.Random, result: Edits
) -> None:
    """A run that goes on from the edited one takes every edit along once, also when killed."""
    from ttgcd.discovery.edits import EditedFolder

    after = work / "went-on"
    shutil.rmtree(after, ignore_errors=True)
    command = ["discover", case.arguments[0], "--from", str(out), "--out", str(after), "--quiet"]
    dies = rng.randint(1, 120) if rng.random() < 0.6 else None
    code = wait(start(command, work / "log", every=3, die_at=dies, after=rng.random() < 0.5))
    if code == -signal.SIGKILL:
        result.kills += 1
        code = wait(start([*command, "--resume"], work / "log", every=3))
    if code:
        result.fault("failed", f"going on: code {code}: {_said(work)}")
        return
    there = [edit.text() for edit in EditedFolder(after).log()]
    if there != edits:
        result.fault("lost" if len(there) < len(edits) else "doubled", f"going on: {there}")
    result.steps["gone on"] += 1


def _step(case: Case, out: Path, ids: list[str], rng: random.Random) -> tuple[str, list[str]]:
    novel = str(rng.choice((8, 8, 9, 9, 10, 11, _SPLIT + rng.randint(1, 6), 99)))
    other = str(rng.choice((*range(12), _SPLIT + rng.randint(1, 6))))
    images = rng.sample(ids, rng.randint(1, 3))
    words = {
        "rename": [novel, f"{rng.choice(('moose', 'elk', 'dog', 'Ochse'))} {rng.randint(1, 3)}"],
        "merge": [novel, other],
        "split": [novel, *images] if rng.random() < 0.3 else [novel, "--in-two"],
        "move": [other, *images],
        "hide": [novel],
        "mark": [novel, rng.choice(("cat", "dog", "wolf"))],
        "undo": [] if rng.random() < 0.7 else [str(rng.randint(1, 6))],
        "redo": [],
    }
    step = rng.choice([*words, "undo", "resume"])
    if step == "resume":
        return step, case.command(out, "--resume")
    return step, ["edit", str(out), step, *words[step]]


def _end(run: Path, out: Path, result: Edits) -> None:
    """The files are what the log says; without edits they are the first ones."""
    from ttgcd.discovery.edits import EditedFolder
    from ttgcd.discovery.edits.folder import parquet_bytes
    from ttgcd.discovery.edits.log import active

    folder = EditedFolder(out)
    folder.follow()
    log = folder.log()
    if [edit.number for edit in log] != list(range(1, len(log) + 1)):
        result.fault("doubled", f"numbers {[edit.number for edit in log]}")
    if active(log):
        found = (out / "assignments.parquet").read_bytes()
        if found != parquet_bytes(folder.replayed().assignments):
            result.fault("other_bytes", f"the table is not what {len(log)} edits make of it")
    while active(folder.log()):
        folder.undo()
    for name in _FILES:
        if (out / name).read_bytes() != (run / name).read_bytes():
            result.fault("other_bytes", f"{name} differs after the undo of everything")


def _said(work: Path) -> str:
    return ((work / "log").read_text("utf-8", "replace").strip().splitlines() or [""])[-1]

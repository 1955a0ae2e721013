"""Random edits, undos, redos, resumed and continued runs, killed wherever they are: no edit lost or
doubled.

Every step is a real ``ttgcd`` command in a child that may die before or after any call that changes
the disk. A command that ended well is acknowledged: its edit must be in the log for ever. One that
was killed may be in the log once or not at all. A run that goes on from an edited one (``--from``)
takes every edit along, and half of the time the sequence goes on there, edits and all. At the end
the files of every folder must be what its log says, and the undo of everything must give back, byte
for byte, the files that the same runs leave when nobody edits anything.
"""

from __future__ import annotations

import random
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from faults.kills import start, wait, warm_up
from faults.world import Case

_FILES = ("assignments.parquet", "categories.json", "report.html")
_SPLIT = 1_000_000


@dataclass
class Edits:
    """What the sequences have done."""

    sequences: int = 0
    continued: int = 0
    undone: int = 0
    no_longer: int = 0
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
            f"edits: {self.sequences} sequences, {self.continued} with continued runs, "
            f"{self.kills} SIGKILLs, {self.refused} refused commands: {self.lost} edits lost, "
            f"{self.doubled} doubled, {self.other_bytes} files with other bytes, "
            f"{self.failed} failed"
        )
        yield f"       made: {made}"
        yield (
            f"       {self.undone} folders undone to their first bytes; {self.no_longer} edits no "
            "longer applied after a run went on, and were kept and reported"
        )
        yield from (f"       {example}" for example in self.examples[:10])

    def fault(self, kind: str, what: str) -> None:
        setattr(self, kind, getattr(self, kind) + 1)
        self.examples.append(f"{kind}: {what}")


@dataclass(frozen=True)
class Folder:
    """A run that the sequence edits: where it is, how it is resumed, the same run unedited."""

    out: Path
    command: tuple[str, ...]
    unedited: Path
    depth: int = 0


class World:
    """The commands of a campaign, and the runs that nobody edits."""

    def __init__(self, case: Case, work: Path) -> None:
        self.case, self.work = case, work
        self.more = work / "more.npy"
        rows = np.load(case.arguments[0])
        np.save(self.more, np.roll(rows, 1, axis=1)[: len(rows) // 3] * 0.3 + rows[::3])
        self.first = work / "edited-run"
        self._run(case.command(self.first, "--overwrite"))
        self._unedited = [self.first]

    def go_on(self, earlier: Path, out: Path) -> list[str]:
        words = ["discover", str(self.more), "--from", str(earlier), "--out", str(out)]
        return [*words, "--threads", "1", "--quiet"]

    def unedited(self, depth: int) -> Path:
        """The run after so many continuations without any edit."""
        while len(self._unedited) <= depth:
            out = self.work / f"edited-run-{len(self._unedited)}"
            self._run([*self.go_on(self._unedited[-1], out), "--overwrite"])
            self._unedited.append(out)
        return self._unedited[depth]

    def _run(self, command: list[str]) -> None:
        if wait(start(command, self.work / "log", every=1)):
            raise RuntimeError(f"an undisturbed run failed: {_said(self.work)}")


def campaign(
    case: Case,
    sequences: int,
    work: Path,
    seed: int = 0,
    tell: Callable[[str], None] = lambda line: None,
) -> Edits:
    """``sequences`` random sequences on copies of one finished run."""
    warm_up()
    result, rng, world = Edits(), random.Random(seed), World(case, work)
    _import_all(world.first, work)
    for number in range(sequences):
        out = work / "edited"
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(world.first, out)
        resumed = tuple(case.command(out, "--resume"))
        folders = _sequence(Folder(out, resumed, world.first), world, rng, result)
        for folder in reversed(folders):
            _end(folder, result)
        result.sequences += 1
        result.continued += len(folders) > 1
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


def _sequence(here: Folder, world: World, rng: random.Random, result: Edits) -> list[Folder]:
    """Edits and other commands; all folders that they were about."""
    folders = [here]
    for _ in range(rng.randint(2, 7)):
        if rng.random() < 0.1:
            after = _go_on(here, len(folders), world, rng, result)
            if after is None:
                break
            folders.append(after)
            here = after if rng.random() < 0.5 else here
        elif not _one(here, world, rng, result):
            break
    return folders


def _one(here: Folder, world: World, rng: random.Random, result: Edits) -> bool:
    """One command on a folder; False when its log can no longer be read."""
    from ttgcd.discovery.edits import EditedFolder
    from ttgcd.errors import InputError

    folder = EditedFolder(here.out)
    before = [edit.text() for edit in folder.log()]
    step, command = _step(here, rng)
    dies = rng.randint(1, 40) if rng.random() < 0.4 else None
    code = wait(start(command, world.work / "log", die_at=dies, after=rng.random() < 0.5))
    try:
        after = [edit.text() for edit in folder.log()]
    except InputError as error:
        result.fault("failed", str(error))
        return False
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
        result.fault("failed", f"{step}: code {code}: {_said(world.work)}")
    elif more != (0 if step == "resume" else 1):
        result.fault("lost" if more == 0 else "doubled", f"{step}: {after}")
    if more == 1 or (step == "resume" and code == 0):
        result.steps[step] += 1
    return True


def _go_on(
    here: Folder, number: int, world: World, rng: random.Random, result: Edits
) -> Folder | None:
    """A run that goes on from the edited one takes every edit along once, also when killed."""
    from ttgcd.discovery.edits import EditedFolder

    before = EditedFolder(here.out)
    before.follow()
    edits, applied = [e.text() for e in before.log()], set(before.unapplied())
    out = world.work / f"went-on-{number}"
    shutil.rmtree(out, ignore_errors=True)
    command = world.go_on(here.out, out)
    dies = rng.randint(1, 120) if rng.random() < 0.6 else None
    log = world.work / "log"
    code = wait(start(command, log, every=3, die_at=dies, after=rng.random() < 0.5))
    if code == -signal.SIGKILL:
        result.kills += 1
        code = wait(start([*command, "--resume"], log, every=3))
    if code:
        result.fault("failed", f"going on: code {code}: {_said(world.work)}")
        return None
    after = EditedFolder(out)
    there = [edit.text() for edit in after.log()]
    if there != edits:
        result.fault("lost" if len(there) < len(edits) else "doubled", f"going on: {there}")
    result.no_longer += len(set(after.unapplied()) - applied)
    result.steps["gone on"] += 1
    depth = here.depth + 1
    return Folder(out, (*command, "--resume"), world.unedited(depth), depth)


def _step(here: Folder, rng: random.Random) -> tuple[str, list[str]]:
    import pyarrow.parquet as pq

    ids = pq.read_table(here.out / _FILES[0], columns=["id"]).column("id").to_pylist()
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
        return step, list(here.command)
    return step, ["edit", str(here.out), step, *words[step]]


def _end(here: Folder, result: Edits) -> None:
    """The files are what the log says; without edits they are those of a run that nobody edited."""
    from ttgcd.discovery.edits import EditedFolder
    from ttgcd.discovery.edits.folder import parquet_bytes
    from ttgcd.discovery.edits.log import active

    out, folder = here.out, EditedFolder(here.out)
    folder.follow()
    log = folder.log()
    if [edit.number for edit in log] != list(range(1, len(log) + 1)):
        result.fault("doubled", f"numbers {[edit.number for edit in log]}")
    if active(log):
        found = (out / "assignments.parquet").read_bytes()
        if found != parquet_bytes(folder.table()):
            result.fault("other_bytes", f"the table is not what {len(log)} edits make of it")
    while active(folder.log()):
        folder.undo()
    bad = result.other_bytes
    for name in _FILES if here.depth == 0 else _FILES[:2]:  # a page tells where its run is
        if (out / name).read_bytes() != (here.unedited / name).read_bytes():
            result.fault("other_bytes", f"{out.name}/{name} differs after the undo of everything")
    result.undone += result.other_bytes == bad


def _said(work: Path) -> str:
    return ((work / "log").read_text("utf-8", "replace").strip().splitlines() or [""])[-1]

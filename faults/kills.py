"""Kill runs with SIGKILL wherever they are, resume them to the end, compare with the whole run.

Runs are forked from a process that has imported everything, so that a kill costs a second and not
the import of torch. A child dies in one of two ways: at a random time, or before or after a random
call that changes the disk, which is where a mistake would show.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree

from faults.world import SAME_BYTES, Case

_CALLS = ("fsync", "replace", "rename", "unlink", "rmdir", "mkdir", "open")
_PATIENCE = 900.0
#: Batches between checkpoints (None: only by time), and the share of calls that are left then.
_EVERY: dict[int | None, float] = {1: 1.0, 3: 0.5, None: 0.2}


@dataclass
class Kills:
    """What the kills have done."""

    kills: int = 0
    runs: int = 0
    lost: int = 0
    duplicated: int = 0
    different: int = 0
    other_bytes: int = 0
    failed: int = 0
    ended_before: int = 0  # the run was faster than the killer
    stops: Counter[str] = field(default_factory=Counter)  # how runs ended that were asked to stop
    phases: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    @property
    def bad(self) -> int:
        return self.lost + self.duplicated + self.different + self.other_bytes + self.failed

    def lines(self) -> Iterator[str]:
        yield (
            f"kills: {self.kills} SIGKILLs in {self.runs} runs, each resumed to the end: "
            f"{self.lost} samples lost, {self.duplicated} duplicated, {self.different} with "
            f"another answer, {self.other_bytes} files with other bytes, {self.failed} failed"
        )
        where = ", ".join(f"{count} {phase}" for phase, count in sorted(self.phases.items()))
        yield f"       killed in: {where}; {self.ended_before} times the run was faster"
        if self.stops:
            how = ", ".join(f"{count} {name}" for name, count in sorted(self.stops.items()))
            yield f"       asked to stop {sum(self.stops.values())} times, each resumed: {how}"
        yield from (f"       {example}" for example in self.examples[:10])


def warm_up() -> None:
    """Import what a run imports, without starting threads: they would not survive a fork."""
    import pyarrow.parquet
    import torch
    from PIL import Image

    import ttgcd.cli.discover
    import ttgcd.discovery.outcome
    import ttgcd.vlm.huggingface  # noqa: F401

    Image.init()
    torch.set_num_threads(1)
    pyarrow.set_cpu_count(1)
    pyarrow.set_io_thread_count(1)


def campaign(
    cases: list[Case],
    kills: int,
    work: Path,
    stops: int = 0,
    seed: int = 0,
    tell: Callable[[str], None] = lambda line: None,
) -> Kills:
    """At least ``kills`` SIGKILLs spread over the cases, and ``stops`` SIGTERMs and SIGINTs."""
    warm_up()
    rng = random.Random(seed)
    result = Kills()
    whole = {case.name: _whole_run(case, work, tell) for case in cases}
    while result.kills < kills:
        case = cases[result.runs % len(cases)]
        _one_run(case, whole[case.name], work / "killed", rng, result)
        if result.runs % 10 == 0:
            tell(f"{result.kills} kills in {result.runs} runs, {result.bad} faults")
    for number in range(stops):
        case = cases[number % len(cases)]
        _one_stop(case, whole[case.name], work / "stopped", rng, result)
    return result


@dataclass(frozen=True)
class _Whole:
    """A run that nobody disturbed."""

    out: Path
    seconds: float
    calls: int


def _whole_run(case: Case, work: Path, tell: Callable[[str], None]) -> _Whole:
    out = work / f"whole-{case.name.replace(' ', '-')}"
    counted = work / "calls"
    begun = time.monotonic()
    pid = start(case.command(out, "--overwrite"), work / "log", every=1, count_calls=counted)
    code = wait(pid)
    if code != 0:
        raise RuntimeError(f"{case.name}: the undisturbed run failed: {_log(work)}")
    found = _Whole(out, time.monotonic() - begun, int(counted.read_text()))
    tell(
        f"{case.name}: {found.seconds:.1f} s undisturbed, {found.calls} calls that change the disk"
    )
    return found


def _one_run(case: Case, whole: _Whole, out: Path, rng: random.Random, result: Kills) -> None:
    rmtree(out, ignore_errors=True)
    log = out.parent / "log"
    every = rng.choice([1, 1, 1, 3, None])
    for attempt in range(rng.randint(1, 6)):
        command = case.command(out, "--resume")
        share = 1.0 if attempt == 0 else 0.4  # a resumed run has less to do
        if rng.random() < 0.3:
            pid = start(command, log, every)
            time.sleep(rng.uniform(0, share * whole.seconds))
            _kill(pid)
        else:
            at = rng.randint(1, int(share * _EVERY[every] * whole.calls))
            pid = start(command, log, every, die_at=at, after=rng.random() < 0.5)
        code = wait(pid)
        if code == -signal.SIGKILL:
            result.kills += 1
            result.phases[_phase(out)] += 1
        elif code == 0:
            result.ended_before += 1
            break
        else:
            result.failed += 1
            result.examples.append(f"{case.name}: code {code}: {_log(out.parent)}")
            break
    code = wait(start(case.command(out, "--resume"), log, every))
    result.runs += 1
    if code != 0:
        result.failed += 1
        result.examples.append(f"{case.name}: resuming gave code {code}: {_log(out.parent)}")
        return
    _compare(case, whole.out, out, result)


def _one_stop(case: Case, whole: _Whole, out: Path, rng: random.Random, result: Kills) -> None:
    """Ask a run to stop: it ends with the customary code and can go on."""
    rmtree(out, ignore_errors=True)
    log = out.parent / "log"
    number = rng.choice((signal.SIGTERM, signal.SIGINT))
    pid = start(case.command(out, "--resume"), log)
    time.sleep(rng.uniform(0, whole.seconds))
    os.kill(pid, number)
    code = wait(pid)
    # Before and after the stream nothing is in hand and the signal acts as it does on any program.
    if code in (128 + number, -number):
        result.stops[f"code {128 + number}"] += 1
    elif code == 0:
        result.stops["complete already"] += 1
    else:
        result.failed += 1
        result.examples.append(f"{case.name}: {number.name}: code {code}: {_log(out.parent)}")
    code = wait(start(case.command(out, "--resume"), log))
    if code == 0:
        _compare(case, whole.out, out, result)
    else:
        result.failed += 1
        result.examples.append(f"{case.name}: resuming gave code {code}: {_log(out.parent)}")


def _compare(case: Case, whole: Path, out: Path, result: Kills) -> None:
    import pyarrow.parquet as pq

    read = (pq.read_table(folder / "assignments.parquet") for folder in (whole, out))
    expected, found = (
        list(zip(table.column("id").to_pylist(), table.column("category").to_pylist()))
        for table in read
    )
    answers = dict(found)
    result.duplicated += len(found) - len(answers)
    result.lost += sum(name not in answers for name, _ in expected)
    result.different += sum(name in answers and answers[name] != c for name, c in expected)
    for name in SAME_BYTES:
        if (whole / name).read_bytes() != (out / name).read_bytes():
            result.other_bytes += 1
            result.examples.append(f"{case.name}: {name} differs")
    if (out / ".progress").exists():
        result.failed += 1
        result.examples.append(f"{case.name}: .progress is left")


def _phase(out: Path) -> str:
    """How far a run had come when it was killed, from what it left."""
    from ttgcd.storage.state_files import load_values

    checkpoints = sorted((out / ".progress").glob("checkpoint-*"))
    if not (out / ".progress/settings.json").exists():
        return "end" if (out / "state/state.json").exists() else "start"
    if (out / "rejected.csv").exists():
        return "finishing"
    if not checkpoints:
        return "start"
    values = load_values(checkpoints[-1])
    if values["states"]["method"]["phase"] == "warm-up":
        return "warm-up"
    return "stream"


# -- processes ------------------------------------------------------------------------------------


def start(
    command: list[str],
    log: Path,
    every: int | None = None,
    die_at: int | None = None,
    after: bool = False,
    count_calls: Path | None = None,
) -> int:
    """Start a command in a child of this process."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        calls = _watch_calls(die_at, after)
        code = _run(command, every)
        if count_calls is not None:
            count_calls.write_text(str(calls[0]))
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except KeyboardInterrupt:  # before the command was reached: Python itself ends so
        code = 128 + signal.SIGINT
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run(command: list[str], every: int | None) -> int:
    from ttgcd.cli import main
    from ttgcd.engines.folder import run_to_folder

    # The command checkpoints by time, which would be too seldom for runs of a second.
    run_to_folder.__kwdefaults__["checkpoint_every_batches"] = every
    return main(command)


def _watch_calls(die_at: int | None, after: bool) -> list[int]:
    """Count the calls that change the disk, and die at one of them."""
    calls = [0]

    def watched(call: Callable) -> Callable:
        def counted(*args: object, **kwargs: object) -> object:
            calls[0] += 1
            if calls[0] == die_at and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            value = call(*args, **kwargs)
            if calls[0] == die_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return value

        return counted

    for name in _CALLS:
        setattr(os, name, watched(getattr(os, name)))
    return calls


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def wait(pid: int) -> int:
    """Exit code, or minus the signal; a run that hangs is killed and counts as failed."""
    until = time.monotonic() + _PATIENCE
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            _kill(pid)
            os.waitpid(pid, 0)
            return -signal.SIGALRM
        time.sleep(0.005)


def _log(work: Path) -> str:
    lines = (work / "log").read_text("utf-8", "replace").strip().splitlines()
    return lines[-1][:300] if lines else "no message"

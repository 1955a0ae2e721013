"""Disks that are full and folders that cannot be written, through the real command."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from faults.kills import start, wait, warm_up
from faults.world import SAME_BYTES, Case


@dataclass
class Disk:
    """What the runs have said and left."""

    full: int = 0
    read_only: int = 0
    bad: int = 0
    examples: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        yield (
            f"disk: {self.full} runs on a full disk, each refused in one line and resumed to the "
            f"same bytes; {self.read_only} runs into a read-only folder; {self.bad} faults"
        )
        yield from (f"       {example}" for example in self.examples)

    def fault(self, what: str) -> None:
        self.bad += 1
        self.examples.append(what)


def campaign(case: Case, work: Path, sizes: tuple[int, ...] = (8, 24, 40, 64, 80)) -> Disk:
    """``sizes`` are those of the small disks, in KiB."""
    warm_up()
    result = Disk()
    whole = work / "whole-disk"
    code, said = _discover(case.command(whole, "--overwrite"), work)
    if code:
        raise RuntimeError(f"the undisturbed run failed: {said}")
    for size in sizes:
        _full_disk(case, whole, size, work, result)
    _read_only(case, work, result)
    return result


def _discover(command: list[str], work: Path) -> tuple[int, str]:
    """Exit code and last line of a command."""
    log = work / "log"
    code = wait(start(command, log, every=1))
    return code, (log.read_text("utf-8", "replace").strip().splitlines() or [""])[-1]


def _full_disk(case: Case, whole: Path, size: int, work: Path, result: Disk) -> None:
    mount = work / "small-disk"
    mount.mkdir(exist_ok=True)
    options = f"size={size}k"
    mounting = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(mount)]
    if subprocess.run(mounting, stderr=subprocess.DEVNULL).returncode:
        result.examples.append(f"{size} KiB: skipped, for mounting a small disk needs root")
        return
    try:
        out = mount / "out"
        code, said = _discover(case.command(out), work)
        if code != 2 or "No space left on device" not in said:
            result.fault(f"{size} KiB: code {code}: {said}")
            return
        subprocess.run(["mount", "-o", "remount,size=64m", str(mount)], check=True)
        code, said = _discover(case.command(out, "--resume"), work)
        if code:
            result.fault(f"{size} KiB: resuming: code {code}: {said}")
            return
        different = [n for n in SAME_BYTES if (out / n).read_bytes() != (whole / n).read_bytes()]
        if different:
            result.fault(f"{size} KiB: other bytes in {', '.join(different)}")
            return
        result.full += 1
    finally:
        subprocess.run(["umount", str(mount)], check=True)


def _read_only(case: Case, work: Path, result: Disk) -> None:
    """A folder without write permission; as root, /proc stands for one."""
    locked = Path(tempfile.mkdtemp(dir=work))
    locked.chmod(0o500)
    out = Path("/proc/ttgcd-out") if os.geteuid() == 0 else locked / "out"
    try:
        code, said = _discover(case.command(out), work)
        if code != 2 or not said.startswith("ttgcd: error: cannot write to"):
            result.fault(f"read-only: code {code}: {said}")
        else:
            result.read_only += 1
    finally:
        locked.chmod(0o700)
        shutil.rmtree(locked)

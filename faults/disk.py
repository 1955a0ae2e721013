"""Disks that are full and folders that cannot be written, through the real command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from faults.world import SAME_BYTES, Case

#: A non-root user, for root may write to read-only folders.
_NOBODY = 65534


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


def campaign(case: Case, work: Path, sizes: tuple[int, ...] = (64, 192, 512)) -> Disk:
    """``sizes`` are those of the small disks, in KiB."""
    result = Disk()
    whole = work / "whole-disk"
    done = _discover(case.command(whole, "--overwrite"))
    if done.returncode:
        raise RuntimeError(f"the undisturbed run failed: {done.stderr}")
    for size in sizes:
        _full_disk(case, whole, size, work, result)
    _read_only(case, work, result)
    return result


def _discover(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload]
        [sys.executable, "-m", "ttgcd", *command], capture_output=True, text=True, **options
    )


def _full_disk(case: Case, whole: Path, size: int, work: Path, result: Disk) -> None:
    mount = work / "small-disk"
    mount.mkdir(exist_ok=True)
    options = f"size={size}k"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(mount)])
    if mounted.returncode:
        result.examples.append("full disk: skipped, for mounting a tmpfs needs root")
        return
    try:
        out = mount / "out"
        done = _discover(case.command(out))
        last = done.stderr.strip().splitlines()[-1:] or [""]
        if done.returncode != 2 or "No space left on device" not in last[0]:
            result.fault(f"{size} KiB: code {done.returncode}: {last[0]}")
            return
        subprocess.run(["mount", "-o", "remount,size=64m", str(mount)], check=True)
        done = _discover(case.command(out, "--resume"))
        if done.returncode:
            result.fault(f"{size} KiB: resuming: code {done.returncode}: {done.stderr[-200:]}")
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
        done = _discover(case.command(out))
        last = done.stderr.strip().splitlines()[-1:] or [""]
        if done.returncode != 2 or not last[0].startswith("ttgcd: error: cannot write to"):
            result.fault(f"read-only: code {done.returncode}: {last[0]}")
        else:
            result.read_only += 1
    finally:
        locked.chmod(0o700)
        shutil.rmtree(locked)

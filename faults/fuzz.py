"""Damaged files by the thousand: each is read or refused with a reason; nothing crashes or hangs.

Every group of files is handled in a child process, so that a crash in a decoder is seen and not
suffered; the files of a group that went wrong are then tried one by one to name the culprit.
"""

from __future__ import annotations

import io
import os
import random
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree

import numpy as np

from faults.mutations import mutate

_GROUP = 50
_PATIENCE = 60  # seconds for a group; under load a single file takes a few milliseconds

#: Handles one file: "read", or the reason why it was refused. Anything else is a fault.
Handle = Callable[[Path], str]


@dataclass
class Fuzz:
    """What became of the damaged files."""

    what: str
    files: int = 0
    read: int = 0
    refused: int = 0
    crashes: int = 0
    hangs: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    peak: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def bad(self) -> int:
        return self.crashes + self.hangs

    def lines(self) -> Iterator[str]:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.kinds.items()))
        yield (
            f"{self.what}: {self.files} damaged files ({kinds}): {self.read} read, "
            f"{self.refused} refused with a reason, {self.crashes} crashes, {self.hangs} hangs; "
            f"peak memory {self.peak / 2**20:.0f} MiB"
        )
        yield from (f"       {example}" for example in self.examples[:10])


@dataclass(frozen=True)
class Seed:
    """A sound file to damage, and what reads it."""

    kind: str
    name: str
    data: bytes
    handle: Handle


def fuzz(
    what: str,
    seeds: Sequence[Seed],
    count: int,
    work: Path,
    seed: int = 0,
    tell: Callable[[str], None] = lambda line: None,
) -> Fuzz:
    """Damage ``count`` files made from the seeds, in turn, and have each one read."""
    rng = random.Random(seed)
    result = Fuzz(what)
    folder = work / "damaged"
    while result.files < count:
        rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        group = []
        for number in range(min(_GROUP, count - result.files)):
            chosen = seeds[(result.files + number) % len(seeds)]
            path = folder / f"{number:03d}" / chosen.name
            path.parent.mkdir()
            path.write_bytes(mutate(chosen.data, rng, rng.choice(seeds).data))
            group.append((chosen, path))
            result.kinds[chosen.kind] += 1
        result.files += len(group)
        _handle_group(group, work, result)
        if result.files % 2000 == 0:
            tell(f"{what}: {result.files} files, {result.bad} faults")
    return result


def _handle_group(group: list[tuple[Seed, Path]], work: Path, result: Fuzz) -> None:
    code, said = _in_child(group, work / "said", result)
    if code == 0:
        result.read += said.count("read")
        refused = [reason for reason in said if reason != "read"]
        result.refused += len(refused)
        result.reasons.update(" ".join(reason.split()[:4]) for reason in refused)
        return
    if len(group) > 1:
        for one in group:
            _handle_group([one], work, result)
        return
    (seed, path) = group[0]
    kept = work / f"culprit-{result.crashes + result.hangs}-{seed.name}"
    kept.write_bytes(path.read_bytes())
    if code == -signal.SIGALRM:
        result.hangs += 1
    else:
        result.crashes += 1
    last = said[-1] if said else ""
    result.examples.append(f"{seed.kind}: code {code}: {last} ({kept})")


def _in_child(group: list[tuple[Seed, Path]], log: Path, result: Fuzz) -> tuple[int, list[str]]:
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(_PATIENCE)
            with open(log, "w", encoding="utf-8") as said:
                for seed, path in group:
                    try:
                        answer = seed.handle(path)
                    except BaseException:
                        answer = traceback.format_exc().strip().splitlines()[-1]
                        raise
                    finally:
                        said.write(" ".join(answer.split()) + "\n")
                        said.flush()
            code = 0
        finally:
            os._exit(code)
    _, status, usage = os.wait4(pid, 0)
    result.peak = max(result.peak, usage.ru_maxrss * 1024)
    text = log.read_text("utf-8").splitlines() if log.exists() else []
    return os.waitstatus_to_exitcode(status), text


# -- images ---------------------------------------------------------------------------------------


def image_seeds() -> list[Seed]:
    """Sound pictures in six formats and many modes, handled as a run handles a folder."""
    from PIL import Image

    rng = np.random.default_rng(3)
    small = rng.integers(0, 256, (24, 31, 3), dtype=np.uint8)
    rgb = Image.fromarray(small)
    modes = {mode: rgb.convert(mode) for mode in ("RGB", "L", "P", "RGBA", "CMYK", "1")}
    deep = Image.fromarray(rng.integers(0, 65536, (17, 23), dtype=np.uint16))
    exif = Image.Exif()
    exif[0x0112] = 6
    frames = [rgb.convert("P"), rgb.rotate(90).convert("P")]
    made: list[tuple[str, Image.Image, dict]] = [
        *(("JPEG", modes[mode], {}) for mode in ("RGB", "L", "CMYK")),
        ("JPEG", rgb, {"progressive": True, "exif": exif}),
        *(("PNG", modes[mode], {}) for mode in ("RGB", "L", "P", "RGBA", "1")),
        ("PNG", deep, {"exif": exif}),
        ("GIF", modes["P"], {}),
        ("GIF", frames[0], {"save_all": True, "append_images": frames[1:], "duration": 50}),
        ("WEBP", modes["RGB"], {}),
        ("WEBP", modes["RGBA"], {"lossless": True}),
        ("WEBP", rgb, {"save_all": True, "append_images": [rgb.rotate(90)]}),
        *(("TIFF", modes[mode], {}) for mode in ("RGB", "CMYK", "1")),
        ("TIFF", deep, {}),
        *(("TIFF", rgb, {"compression": c}) for c in ("tiff_lzw", "tiff_adobe_deflate", "jpeg")),
        *(("BMP", modes[mode], {}) for mode in ("RGB", "L", "P", "1")),
    ]
    seeds: list[Seed] = []
    for kind, image, options in made:
        buffer = io.BytesIO()
        image.save(buffer, kind, **options)
        extension = {"JPEG": "jpg", "TIFF": "tif"}.get(kind, kind.lower())
        seeds.append(Seed(kind, f"picture.{extension}", buffer.getvalue(), read_picture))
    return sorted(seeds, key=lambda seed: len(seed.data) % 7)  # the kinds take turns


def read_picture(path: Path) -> str:
    """As a run reads a folder: accepted, or set aside with a reason."""
    from ttgcd.streams.folder import FolderSource
    from ttgcd.streams.stream import Stream
    from ttgcd.vlm.preprocess import Preprocess

    stream = Stream(FolderSource(str(path.parent)), Preprocess(size=16), 4, workers=0)
    batches = list(stream)
    if sum(map(len, batches)) + len(stream.rejected) != 1:
        raise RuntimeError("a file was neither accepted nor set aside")
    if batches:
        images = batches[0].images
        if images is None or tuple(images.shape) != (1, 3, 16, 16):
            raise RuntimeError("an image of another shape")
        return "read"
    if not stream.rejected[0].reason:
        raise RuntimeError("set aside without a reason")
    return stream.rejected[0].reason

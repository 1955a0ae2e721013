"""Corrupted copies of whole sets, in the official layouts: in parallel, resumable.

The same seed gives the same set whatever the number of processes and however often it was
interrupted: an image's randomness depends on its place (arrays) or its relative path (files).
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from PIL import Image

from ttgcd.corruptions.apply import corrupt
from ttgcd.errors import InputError

META = "meta.json"
Layout = Literal["imagenet", "folder"]
Constants = Literal["auto", "cifar", "imagenet"]
Progress = Callable[[int, int], None]
_IMAGES = {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff"}
_ROWS = 250
_T = TypeVar("_T")


@dataclass(frozen=True)
class Recipe:
    """What to make; stored beside the result so that two recipes never mix."""

    severities: tuple[int, ...]
    seed: int = 0
    constants: Constants = "auto"


def _no_progress(done: int, total: int) -> None: ...


def corrupt_array(
    source: Path,
    target: Path,
    kinds: Sequence[str],
    recipe: Recipe,
    workers: int = 1,
    progress: Progress = _no_progress,
) -> list[str]:
    """CIFAR-C's layout from ``images.npy`` and ``labels.npy``: one severity-major file a kind.

    With all five severities the files are those of the official sets; with fewer, only their
    rows are there and ``meta.json`` says which. Returns the kinds that were already there.
    """
    labels_path = source / "labels.npy"
    images = _open_images(source / "images.npy")
    try:
        labels = np.load(labels_path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"cannot read {labels_path} ({error}): labels belong to the set") from None
    if labels.shape != (len(images),):
        raise InputError(f"{labels_path} has shape {labels.shape} for {len(images)} images")
    target.mkdir(parents=True, exist_ok=True)
    _declare(target / META, recipe, images=len(images))
    _write_array(target / "labels.npy", np.tile(labels, len(recipe.severities)))
    ready = [kind for kind in kinds if (target / f"{kind}.npy").exists()]
    todo = [kind for kind in kinds if kind not in ready]
    rows = len(images) * len(recipe.severities)
    done, total = len(ready) * rows, len(kinds) * rows
    progress(done, total)
    with _pool(workers) as pool:
        for kind in todo:
            partial = target / f".{kind}.npy.partial"
            shape = (rows, *images.shape[1:])
            out = np.lib.format.open_memmap(partial, mode="w+", dtype=np.uint8, shape=shape)
            jobs = (
                (str(source / "images.npy"), block * len(images), start, kind, severity, recipe)
                for block, severity in enumerate(recipe.severities)
                for start in range(0, len(images), _ROWS)
            )
            for row, made in _run(pool, _corrupt_rows, jobs, workers):
                out[row : row + len(made)] = made
                done += len(made)
                progress(done, total)
            out.flush()
            del out
            os.replace(partial, target / f"{kind}.npy")
    return ready


def _open_images(path: Path) -> np.ndarray:
    try:
        images = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(
            f"cannot read {path} ({error}): the source must be a folder with images.npy and "
            "labels.npy, as `ttgcd data prepare cifar10` leaves it"
        ) from None
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3 or not len(images):
        raise InputError(f"{path} is {images.dtype} {images.shape}: expected uint8 (N, H, W, 3)")
    return images


def _corrupt_rows(job: tuple[str, int, int, str, int, Recipe]) -> tuple[int, np.ndarray]:
    path, offset, start, kind, severity, recipe = job
    images = np.load(path, mmap_mode="r", allow_pickle=False)[start : start + _ROWS]
    made = [
        corrupt(np.asarray(image), kind, severity, (recipe.seed, start + i), recipe.constants)
        for i, image in enumerate(images)
    ]
    return offset + start, np.stack(made)


def corrupt_folder(
    source: Path,
    target: Path,
    kinds: Sequence[str],
    recipe: Recipe,
    layout: Layout = "imagenet",
    workers: int = 1,
    progress: Progress = _no_progress,
) -> list[str]:
    """``<kind>/<severity>/<relative path>`` from a folder of image files.

    ``imagenet``: the centre 224 of the short side at 256, JPEG of quality 85, as in ImageNet-C.
    ``folder``: whole images as PNG. Returns one line for every file that could not be read.
    """
    if not source.is_dir():
        raise InputError(f"{source} is not a folder")
    files = sorted(
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.suffix.lower() in _IMAGES and not path.name.startswith(".") and path.is_file()
    )
    if not files:
        raise InputError(f"no image below {source}: it needs files such as <class>/<name>.jpg")
    target.mkdir(parents=True, exist_ok=True)
    _declare(target / META, recipe, layout=layout)
    problems: list[str] = []
    progress(0, len(files))
    jobs = ((str(source), str(target), file, tuple(kinds), recipe, layout) for file in files)
    with _pool(workers) as pool:
        for done, problem in enumerate(_run(pool, _corrupt_file, jobs, workers), 1):
            if problem:
                problems.append(problem)
            progress(done, len(files))
    return problems


def _corrupt_file(job: tuple[str, str, str, tuple[str, ...], Recipe, Layout]) -> str | None:
    source, target, file, kinds, recipe, layout = job
    name = _output_name(file, layout)
    wanted = [
        (kind, severity, Path(target, kind, str(severity), name))
        for kind in kinds
        for severity in recipe.severities
    ]
    wanted = [entry for entry in wanted if not entry[2].exists()]
    if not wanted:
        return None
    try:
        with Image.open(Path(source, file)) as picture:
            image = _prepare(picture.convert("RGB"), layout)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        return f"{file}: {error}"
    number = int.from_bytes(hashlib.sha256(file.encode()).digest()[:8], "big")
    for kind, severity, path in wanted:
        made = corrupt(image, kind, severity, (recipe.seed, number), recipe.constants)
        encoded = io.BytesIO()
        if layout == "imagenet":
            Image.fromarray(made).save(encoded, "JPEG", quality=85)
        else:
            Image.fromarray(made).save(encoded, "PNG")
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_bytes(path, encoded.getvalue())
    return None


def _output_name(file: str, layout: Layout) -> str:
    """The file's own name, with an extension added if its format changes."""
    suffix = Path(file).suffix.lower()
    if layout == "folder":
        return file if suffix == ".png" else f"{file}.png"
    return file if suffix in (".jpg", ".jpeg") else f"{file}.JPEG"


def _prepare(picture: Image.Image, layout: Layout) -> np.ndarray:
    if layout == "imagenet":
        scale = 256 / min(picture.size)
        size = tuple(max(256, round(side * scale)) for side in picture.size)
        picture = picture.resize(size, Image.Resampling.BILINEAR)  # type: ignore[arg-type]
        left, top = (picture.width - 224) // 2, (picture.height - 224) // 2
        picture = picture.crop((left, top, left + 224, top + 224))
    return np.asarray(picture)


def _declare(path: Path, recipe: Recipe, **more: Any) -> None:
    """Write the recipe, or check that a set begun earlier was made by the same one."""
    wanted = {"made_by": "ttgcd", **more, **asdict(recipe), "severities": list(recipe.severities)}
    if path.exists():
        try:
            found = json.loads(path.read_text("utf-8"))
        except ValueError:
            raise InputError(f"{path} is damaged: delete that folder and start again") from None
        if found != wanted:
            raise InputError(
                f"{path.parent} holds a set made with other settings ({path.name} says "
                f"{json.dumps(found)}): use the same settings or another folder"
            )
        return
    others = [entry.name for entry in path.parent.iterdir() if not entry.name.startswith(".")]
    if others:
        raise InputError(
            f"{path.parent} is not empty and holds no set made here: choose a new folder"
        )
    _write_bytes(path, (json.dumps(wanted, indent=2) + "\n").encode())


def _write_array(path: Path, array: np.ndarray) -> None:
    encoded = io.BytesIO()
    np.save(encoded, array)
    _write_bytes(path, encoded.getvalue())


def _write_bytes(path: Path, content: bytes) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.write_bytes(content)
    os.replace(partial, path)


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    # Spawned processes inherit neither threads nor locks of this one.
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _leave_interrupts_to_the_parent)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run(
    pool: ProcessPoolExecutor, work: Callable[[Any], _T], jobs: Iterable[Any], workers: int
) -> Iterator[_T]:
    """Results as they come, with only a few jobs waiting at any time."""
    waiting: set[Future[_T]] = set()
    for job in jobs:
        waiting.add(pool.submit(work, job))
        if len(waiting) >= 4 * workers:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
    yield from (future.result() for future in waiting)

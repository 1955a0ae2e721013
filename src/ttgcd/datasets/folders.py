"""Benchmarks that are folders of image files: ImageNet-C, CUB-C, DomainNet, and the user's own."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ttgcd.corruptions import HELD_OUT, KINDS, SEVERITIES
from ttgcd.corruptions.files import META
from ttgcd.datasets.benchmark import Benchmark, find_root, images_in, open_files
from ttgcd.datasets.classes import (
    class_names,
    folder_names,
    load_split,
    make_split,
    split_by_names,
)
from ttgcd.errors import InputError
from ttgcd.streams.base import Source

CUB_KINDS = ("fog", "frost", "gaussian_noise", "impulse_noise", "shot_noise", "snow", "zoom_blur")
CUB_HELD_OUT = ("spatter", "speckle_noise")
DOMAINS = ("clipart", "infograph", "painting", "quickdraw", "real", "sketch")


def load_imagenet_c(
    name: str,
    root: Path | str | None,
    severity: int = 5,
    subset: int | None = None,
    distinct_names: bool = False,
) -> Benchmark:
    """ImageNet-C, ``<corruption>/<severity>/<wnid>/*.JPEG``; all 50,000 images or 5,000 of them.

    ``subset=5000`` keeps five images a class: those whose file names have the smallest SHA-256.
    It is this package's list, not robustbench's.
    """
    if subset not in (None, 5000, 50_000):
        raise InputError(f"subset is {subset!r}: ImageNet-C has 5000 or 50000 (all)")
    _check_severity(severity)
    folder = find_root(root, name, ("ImageNet-C", "imagenet-c"), f"*/{severity}/n0*")
    wnids = folder_names("imagenet_wnids")

    def open_kind(kind: str) -> tuple[Source, np.ndarray]:
        base = folder / kind / str(severity)
        found = _by_class(base, wnids)
        if subset == 5000:
            found = [sorted(names, key=_digest)[:5] for names in found]
            found = [sorted(names) for names in found]
        return _open(folder, f"{kind}/{severity}", wnids, found)

    notes = list(_made_here(folder))
    if subset == 5000:
        notes.append("5 images a class chosen by this package, not robustbench's 5,000")
    if not distinct_names:
        notes.append("the names 'missile' and 'sunglasses' each stand for two classes")
    classes = class_names("imagenet", distinct_names)
    return Benchmark(
        name, classes, load_split("imagenet"), KINDS, HELD_OUT, tuple(notes), opener=open_kind
    )


def load_cub_c(name: str, root: Path | str | None, severity: int = 5) -> Benchmark:
    """CUB-C in HiLo's layout, the test images only when CUB's own lists are beside it."""
    _check_severity(severity)
    folders = folder_names("cub")
    folder = find_root(root, name, ("CUB-C", "cub-c"), f"*/{severity}/[0-9]*.*")
    training = cub_training_images(folder)

    def open_kind(kind: str) -> tuple[Source, np.ndarray]:
        found = _by_class(folder / kind / str(severity), folders)
        if training is not None:
            found = [[name for name in names if Path(name).stem not in training] for names in found]
        return _open(folder, f"{kind}/{severity}", folders, found)

    notes = list(_made_here(folder))
    if training is None:
        notes.append("CUB's images.txt and train_test_split.txt not found: every image is used")
    return Benchmark(
        name,
        class_names("cub"),
        load_split("cub"),
        CUB_KINDS,
        CUB_HELD_OUT,
        tuple(notes),
        opener=open_kind,
    )


def cub_training_images(folder: Path) -> set[str] | None:
    """Stems of CUB's training images, from the lists beside the set or in CUB_200_2011."""
    for place in (folder, folder / "CUB_200_2011", folder.parent / "CUB_200_2011", folder.parent):
        images, split = place / "images.txt", place / "train_test_split.txt"
        if images.is_file() and split.is_file():
            try:
                flags = dict(line.split() for line in split.read_text("utf-8").splitlines() if line)
                paths = dict(
                    line.split() for line in images.read_text("utf-8").splitlines() if line
                )
                return {Path(path).stem for key, path in paths.items() if flags[key] == "1"}
            except (ValueError, KeyError):
                raise InputError(
                    f"{images} and {split} do not belong together: each line must be an image "
                    "number and a path, or a number and 0 or 1"
                ) from None
    return None


def load_domainnet(name: str, root: Path | str | None) -> Benchmark:
    """DomainNet, train and test together, by the official lists or by folders.

    Class ids follow the official lists (case-insensitive order), whatever the folder sort.
    """
    folders = folder_names("domainnet")
    folder = find_root(root, name, ("DomainNet", "domainnet"), "[ciprqs]*/*/*.*")

    def open_domain(domain: str) -> tuple[Source, np.ndarray]:
        lists = [folder / f"{domain}_{part}.txt" for part in ("train", "test")]
        if all(path.is_file() for path in lists):
            lines = [line for path in lists for line in domainnet_list(path, domain, folders)]
            return open_files(folder, [path for path, _ in lines], [label for _, label in lines])
        return _open(folder, domain, folders, _by_class(folder / domain, folders))

    without = [d for d in DOMAINS if not (folder / f"{d}_train.txt").is_file()]
    notes = [f"official lists of {', '.join(without)} not found: folders are used"] * bool(without)
    return Benchmark(
        name,
        class_names("domainnet"),
        load_split("domainnet"),
        DOMAINS,
        notes=tuple(notes),
        opener=open_domain,
    )


def domainnet_list(path: Path, domain: str, folders: Sequence[str]) -> list[tuple[str, int]]:
    """(relative path, class id) of every line, each checked against its folder's name."""
    entries = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if not line.strip():
            continue
        relative, _, label = line.strip().rpartition(" ")
        parts = relative.split("/")
        fits = label.isdigit() and int(label) < len(folders) and len(parts) == 3
        if not fits or parts[0] != domain or parts[1] != folders[int(label)]:
            raise InputError(
                f"{path}, line {number}: {line.strip()[:80]!r} does not fit '{domain}/<class "
                "folder>/<file> <class id>' in the official class order"
            )
        entries.append((relative, int(label)))
    return entries


def load_image_folder(
    name: str,
    root: Path | str | None,
    known: Sequence[str] | None = None,
    split_seed: int = 0,
) -> Benchmark:
    """The user's own labelled images: one folder a class; half the classes known unless given."""
    if root is None or not Path(root).is_dir():
        raise InputError(f"{root} is not a folder: give a folder with one sub-folder a class")
    folder = Path(root)
    folders = sorted(p.name for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    if len(folders) < 2:
        raise InputError(f"{folder} has {len(folders)} class folders: at least two are needed")
    classes = tuple(entry.replace("_", " ") for entry in folders)
    if len(set(classes)) != len(classes):
        raise InputError(f"two class folders of {folder} have the same name but for '_' and ' '")
    split = (
        make_split(len(classes), split_seed) if known is None else split_by_names(classes, known)
    )

    def open_all(stream: str) -> tuple[Source, np.ndarray]:
        return _open(folder, "", folders, _by_class(folder, folders))

    return Benchmark(name, classes, split, ("images",), opener=open_all)


def _check_severity(severity: int) -> None:
    if severity not in SEVERITIES:
        raise InputError(f"severity is {severity!r}: it must be 1, 2, 3, 4 or 5")


def _made_here(folder: Path) -> tuple[str, ...]:
    if (folder / META).exists():
        return ("corruptions made here: statistically like the published set, not the same",)
    return ()


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def _by_class(base: Path, folders: Sequence[str]) -> list[list[str]]:
    """Image names of every class folder; a class without a folder has none.

    A folder that is no class of the dataset means another dataset or another version of it.
    """
    if not base.is_dir():
        raise InputError(f"{base} is missing: get or make that part of the dataset")
    present = {entry.name for entry in base.iterdir() if entry.is_dir()}
    strange = sorted(name for name in present - set(folders) if not name.startswith("."))
    if strange:
        raise InputError(f"{base / strange[0]} is not a class of this dataset: wrong folder?")
    found = [images_in(base / name) if name in present else [] for name in folders]
    if not any(found):
        raise InputError(f"no image below {base}: get or make that part of the dataset again")
    return found


def _open(
    root: Path, prefix: str, folders: Sequence[str], found: Sequence[Sequence[str]]
) -> tuple[Source, np.ndarray]:
    lead = f"{prefix}/" if prefix else ""
    relative = [f"{lead}{name}/{file}" for name, files in zip(folders, found) for file in files]
    ids = [i for i, files in enumerate(found) for _ in files]
    return open_files(root, relative, ids)

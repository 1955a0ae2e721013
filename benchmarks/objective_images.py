"""What other views of the images, or a re-aligned encoder, would bring to the default method.

    python benchmarks/objective_images.py --features FOLDER --data DATA [--seeds 1]

As benchmarks/objective.py, on the first 1,000 samples, for ideas that encode images again. The
metric from views divides by what differs between an image and its mirror image. Re-alignment trains
LayerNorms on the confident half of the first 500 samples (half of the stream, where it is shorter),
towards the known names by standardised logits or towards the clusters of the fit. The
last column is its processor time (for the metric: of the mirror images) beside that of encoding the
stream once. One thread.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from objective import AS_IT_IS, BENCHMARK, RESTARTS, Case, Table, arguments, cases

from ttgcd.datasets import load_benchmark
from ttgcd.methods.realign import realign
from ttgcd.prototypes.calibration import Geometry, Standard
from ttgcd.prototypes.partition import centres_of
from ttgcd.prototypes.refit import fit
from ttgcd.prototypes.text_evidence import confident
from ttgcd.streams.stream import Stream
from ttgcd.vlm import load_vlm
from ttgcd.vlm.base import VLM
from ttgcd.vlm.encoder import Encoder

MOST = 1000  # samples of a stream


def image_ideas(case: Case, images: torch.Tensor, vlm: VLM) -> Iterator[tuple[str, float, float]]:
    """Name, All, and seconds beside those of encoding the stream once."""

    def encode(encoder: Encoder, pixels: torch.Tensor) -> np.ndarray:
        return np.concatenate([encoder(part) for part in pixels.split(256)])

    began = time.process_time()
    flipped = encode(vlm.encoder(), images.flip(3))
    once = time.process_time() - began
    noise = case.rows - flipped
    values, axes = np.linalg.eigh((noise.T @ noise / len(noise)).astype(np.float64))
    quiet = ((axes * (values + values.mean()) ** -0.25) @ axes.T).astype(np.float32)

    class Quiet(Geometry):
        """Directions that differ between an image and its mirror image count less."""

        @classmethod
        def of(cls, rows: np.ndarray) -> Geometry:
            inner = Geometry.of(rows @ quiet)
            mean = np.linalg.solve(quiet.astype(np.float64), inner.mean).astype(np.float32)
            return Geometry(mean, quiet @ inner.projection)

    with patch("ttgcd.prototypes.refit.Geometry", Quiet):
        yield "metric from views", case.all(case.fit().labels), 1.0
    begin = len(case.rows) // 2
    rows = case.rows[:begin]
    first = fit(rows, case.texts, case.novel, (case.seed, 1), RESTARTS)
    logits, scores = Standard.of(rows, case.texts.anchors)(rows), first.model(rows)
    gap = np.diff(np.partition(scores, -2, axis=1)[:, -2:])[:, 0]
    sure = confident(first.labels, gap, case.count, 0.5)
    means = centres_of(rows[sure], first.labels[sure], case.count)
    says = logits.argmax(axis=1)
    keep = confident(says, case.texts.gate(rows, logits), case.n_known, 0.5)
    targets = {
        "names": (says, keep, case.texts.anchors, case.texts.scale),
        "clusters": (first.labels, sure, means, 20.0),
    }
    for towards, (labels, mask, anchors, scale) in targets.items():
        for lr, epochs, depth in ((1e-4, 2, 0), (1e-3, 2, 0), (1e-3, 2, 1)):
            began, model = time.process_time(), vlm.trainable()
            realign(
                model,
                images[:begin][torch.from_numpy(mask)],
                anchors.astype(np.float32),
                labels[mask],
                np.ones(int(mask.sum()), np.float32),
                logit_scale=scale,
                epochs=epochs,
                lr=lr,
                batch_size=64,
                optimiser="adam",
                seed=case.seed,
                depth=depth,
            )
            share = (time.process_time() - began) / once
            again = encode(vlm.encoder(model.norm_arrays()), images)
            last = ", last block" if depth else ""
            name = f"re-aligned to {towards}, {epochs} epochs, Adam {lr:g}{last}"
            yield name, case.all(case.fit(again).labels), share


def pictures(data: Path, benchmark: str, stream: str, vlm: VLM) -> torch.Tensor:
    source, _ = load_benchmark(benchmark, data).open_stream(stream)
    parts = {}
    for batch in Stream(source, vlm.preprocess, batch_size=256, workers=1):
        assert batch.images is not None
        parts.update(zip(batch.positions, batch.images, strict=True))
    return torch.stack([parts[k] for k in range(len(source))])


def main() -> None:
    parser = arguments(seeds=1)
    parser.add_argument("--data", type=Path, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    vlm, table = load_vlm("mini"), Table(args.streams)
    shares: dict[str, list[float]] = {}
    for stream in args.streams:
        images = pictures(args.data, BENCHMARK[stream], stream, vlm)
        for case in cases(args.features, BENCHMARK[stream], stream, args.seeds, MOST):
            base = case.all(case.labels)
            table.add(AS_IT_IS, stream, base)
            for name, value, share in image_ideas(case, images[case.order], vlm):
                table.add(name, stream, value - base)
                shares.setdefault(name, []).append(share)
    table.show(shares, "time")


if __name__ == "__main__":
    main()

"""What the method costs beside the encoder, as ratios within one run.

    python benchmarks/streaming.py [--model mini] [--images 2048] [--threads 2]

Every figure is a time divided by the time of the plain encoder forward over the same images in the
same process; the encoder itself is set against the peak of a large matrix product.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from ttgcd.engines.local import drive
from ttgcd.methods.base import Task
from ttgcd.methods.pact import Pact
from ttgcd.streams.base import Batch
from ttgcd.vlm import load_vlm
from ttgcd.vlm.anchors import text_anchors


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """The fastest of a few runs."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def batches(images: torch.Tensor, size: int = 128) -> list[Batch]:
    parts = []
    for start in range(0, len(images), size):
        end = min(start + size, len(images))
        numbers = tuple(range(start, end))
        parts.append(Batch(tuple(map(str, numbers)), start, numbers, end, images[start:end]))
    return parts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="mini")
    parser.add_argument("--images", type=int, default=2048)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    vlm = load_vlm(args.model)
    size = vlm.preprocess.size
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(
        0, 256, (args.images, 3, size, size), generator=generator, dtype=torch.uint8
    )
    names = [f"thing {i}" for i in range(50)]
    anchors = text_anchors(vlm, names, cache=False)
    parts = batches(images)

    @torch.inference_mode()
    def forward() -> None:
        for part in parts:
            vlm.encode_images(part.images)

    with threadpool_limits(1, user_api="blas"):  # as in the engine
        encoder = seconds(forward, repeats=5)
    task = Task(tuple(names), anchors, 50, vlm=vlm, logit_scale=vlm.logit_scale)
    method = Pact(warmup=256, epochs=1)

    def warm() -> None:
        method.start(task)
        for part in parts[:2]:
            method.observe(part)

    warmup = seconds(warm, repeats=1)

    def stream() -> None:
        drive(method, parts[2:], [])

    streaming = seconds(stream, repeats=5) * len(parts) / (len(parts) - 2)
    square = torch.randn(1024, 1024)
    peak = 2 * 1024**3 / seconds(lambda: square @ square, repeats=10)
    per_image = encoder / len(images)
    features = np.random.default_rng(0).normal(size=(128, vlm.dim)).astype(np.float32)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    precomputed = Batch(tuple(map(str, range(128))), 0, tuple(range(128)), 128, features=features)
    method.task = task
    prototypes = seconds(lambda: method.predict(precomputed)) / 128
    print(f"model {vlm.name}, {args.threads} threads, {len(images)} images of {size} px")
    print(f"encoder forward alone        1.00   ({1 / per_image:,.0f} images/s)")
    print(f"PACT streaming               {streaming / encoder:.2f}")
    print(f"prototype step alone         {prototypes / per_image:.3f}")
    epoch = (warmup - 2 * 256 * per_image) / (256 * per_image)
    print(f"one re-alignment epoch       {epoch:.2f}   (per image of the buffer)")
    print(f"GEMM peak                    {peak / 1e9:,.0f} GFLOP/s")


if __name__ == "__main__":
    main()

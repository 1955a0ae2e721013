"""Measure one job: open the stream, run the method over it, score it."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ttgcd.bench.clicks import after_clicks
from ttgcd.bench.clock import BatchClock
from ttgcd.bench.columns import CLICKS
from ttgcd.bench.encodings import forget, keeping_encodings, saved_seconds
from ttgcd.bench.images import Decoded, as_decoded, choose, data_hash
from ttgcd.bench.memory import PeakMemory
from ttgcd.bench.realigned import RealignedOnDisk
from ttgcd.bench.results import Job, Row
from ttgcd.datasets import Benchmark, load_benchmark
from ttgcd.engines.features import FeaturesInMemory
from ttgcd.engines.first import first_features
from ttgcd.engines.local import run
from ttgcd.engines.session import Sink
from ttgcd.evaluation import accuracy_by_part, score_stream
from ttgcd.methods.base import Caller, Task
from ttgcd.methods.registry import load_method
from ttgcd.prototypes.count import estimate_novel_count
from ttgcd.streams.base import Source
from ttgcd.streams.stream import Stream
from ttgcd.vlm import load_vlm
from ttgcd.vlm.anchors import text_anchors

if TYPE_CHECKING:
    from ttgcd.vlm.base import VLM

# Decoded images of one stream are kept up to this size; larger streams are decoded every time.
CACHE_BYTES = 3 * 2**30
PARTS = 10
FORWARDS = 9  # forward passes of the encoder alone, before a run and behind it


def fit_warmup(config: dict[str, Any], samples: int) -> dict[str, Any]:
    """The configuration for a stream of this length: at most half of it goes into the buffer.

    The paper's streams are ten times its buffer; some of IconShift's are shorter than it.
    """
    half = max(2, samples // 2)
    fitted = {**config, "warmup": half} if config.get("warmup", 0) > half else config
    if stage := config.get("realign"):
        fitted = {**fitted, "realign": fit_warmup(stage, samples)}
    return fitted


class Bench:
    """What a process keeps from job to job: the model, the benchmark, the images of a stream.

    With ``cost`` nothing is read back from earlier runs, and the encoder alone is measured too.
    """

    def __init__(
        self,
        data: Path | None,
        device: str = "auto",
        decode_workers: int = 2,
        cost: bool = False,
    ) -> None:
        self.data, self.device, self.decode_workers = data, device, decode_workers
        self._vlm: tuple[str, VLM] | None = None
        self._benchmarks: dict[str, Benchmark] = {}
        self._stream: tuple[tuple[Any, ...], Source, np.ndarray, str] | None = None
        self._estimates: dict[tuple[Any, ...], int] = {}
        self._realigned = RealignedOnDisk()
        self._cost = cost

    def vlm(self, name: str) -> VLM:
        if self._vlm is None or self._vlm[0] != name:
            self._stream = None  # decoded for the size of the other model
            vlm = load_vlm(name, self.device)
            self._vlm = (name, vlm if self._cost else keeping_encodings(vlm))
        return self._vlm[1]

    def benchmark(self, name: str, options: dict[str, Any]) -> Benchmark:
        key = f"{name} {sorted(options.items())}"
        if key not in self._benchmarks:
            self._benchmarks[key] = load_benchmark(name, self.data, **options)
        return self._benchmarks[key]

    def source(self, job: Job, vlm: VLM) -> tuple[Source, np.ndarray, str]:
        """Images, true ids by position, and the hash of the data."""
        key = (job.benchmark, str(job.options), job.stream, job.limit, job.model)
        if self._stream is None or self._stream[0] != key:
            self._stream = None  # free the images of the stream before
            forget(vlm)
            source, labels = self.benchmark(job.benchmark, job.options).open_stream(job.stream)
            source, labels = choose(source, labels, job.limit)
            fingerprint = data_hash(source, labels)
            if len(source) * 3 * vlm.preprocess.size**2 <= CACHE_BYTES:
                source = Decoded(source, vlm.preprocess, self.decode_workers)
            self._stream = (key, source, labels, fingerprint)
        return self._stream[1:]

    def stream(self, source: Source, vlm: VLM, job: Job) -> Stream:
        decoded = isinstance(source, Decoded)
        return Stream(
            source,
            as_decoded if decoded else vlm.preprocess,
            batch_size=job.batch_size,
            shuffle_seed=job.seed,
            workers=1 if decoded else self.decode_workers,
        )

    def estimate(self, job: Job, source: Source, vlm: VLM, n_known: int) -> int:
        """Novel classes estimated from the whole stream, once for all methods and seeds."""
        key = (job.benchmark, str(job.options), job.stream, job.limit, job.model, job.novel)
        if key not in self._estimates:
            stream = Stream(source, as_decoded if isinstance(source, Decoded) else vlm.preprocess)
            features = first_features(stream, vlm.encoder())
            self._estimates[key] = estimate_novel_count(
                features, n_known, kmeans="plain" if job.novel == "estimated-plain" else "auto"
            ).novel
        return self._estimates[key]

    def encoder_alone(self, source: Source, vlm: VLM, batch_size: int) -> tuple[list[float], float]:
        """Seconds of some forward passes of the pretrained encoder, and its peak memory in GB."""
        encode = vlm.encoder()
        to_images = as_decoded if isinstance(source, Decoded) else vlm.preprocess
        batch = next(iter(Stream(source, to_images, batch_size=batch_size)))
        seconds = []
        memory = PeakMemory()
        for _ in range(FORWARDS):
            began = time.perf_counter()
            assert batch.images is not None
            encode(batch.images)
            seconds.append(time.perf_counter() - began)
        return seconds, _gigabytes(memory.bytes(), source) or 0.0

    def measure(self, job: Job, novel: int | None = None) -> Row:
        """Run one job. ``novel`` is an estimate of L that is known already."""
        began = time.time()
        vlm = self.vlm(job.model)
        benchmark = self.benchmark(job.benchmark, job.options)
        source, labels, fingerprint = self.source(job, vlm)
        n_known = len(benchmark.known)
        if job.novel == "given":
            novel = len(benchmark.novel)
        elif job.novel == "counted":
            novel = None
        elif novel is None:
            novel = self.estimate(job, source, vlm, n_known)
        task = Task(
            known=benchmark.known,
            anchors=text_anchors(vlm, benchmark.known),
            novel=novel,
            vlm=vlm,
            logit_scale=vlm.logit_scale,
            seed=job.seed,
        )
        config = fit_warmup(job.config, len(source))
        method = load_method(job.method, **config)
        stream = self.stream(source, vlm, job)
        before_run = self.encoder_alone(source, vlm, job.batch_size) if self._cost else None

        def saved() -> float:
            """What was read back counts with the seconds that it took."""
            return self._realigned.saved + saved_seconds(vlm)

        clock = BatchClock(stream, saved, getattr(method, "warmup", 0))
        realigned_before, before = self._realigned.saved, saved()
        caller = Caller()
        caller.realigned = None if self._cost else self._realigned
        features = FeaturesInMemory()
        sinks: list[Sink] = [clock, features] if job.clicks else [clock]
        result = run(method, task, clock, sinks=sinks, caller=caller)
        # A row's method is charged with its encoding, read back or not; once.
        result.timings["method"] += result.timings.pop("encode") + saved() - before
        stream_gb = _gigabytes(clock.stream_bytes(), source)
        warmup_gb = _gigabytes(clock.warmup_bytes, source)
        peak = max(stream_gb or 0.0, warmup_gb or 0.0)
        true = labels[result.positions]
        health = method.health()
        novelty = result.novelty if np.ptp(result.novelty) > 0 else None
        scores = score_stream(result.category, true, n_known, novelty)
        parts = accuracy_by_part(result.category, true, n_known, PARTS)
        steady = clock.steady()
        alone = {}
        if before_run is not None:
            # Before the run and behind it: a machine's speed changes from minute to minute.
            passes = before_run[0] + self.encoder_alone(source, vlm, job.batch_size)[0]
            forward = float(np.median(passes))
            alone = {
                "forward_ms": 1000 * forward,
                "encoder_gb": before_run[1],
                "forwards": steady / forward,
                "other_ms": 1000 * (steady - forward),
                "memory_ratio": (stream_gb or 0.0) / before_run[1],
            }
        clicked = {}
        if job.clicks:
            rows = features.array()
            found = after_clicks(rows, result.category, true, n_known, tuple(CLICKS.values()))
            clicked = {f"after_{n}": 100 * value for n, value in found.items()}
        return {
            **asdict(job),
            **alone,
            **clicked,
            "run_id": job.run_id,
            "metrics": scores.as_percent(),
            "deciles": [100 * part.all for part in parts],
            "known_classes": n_known,
            "novel_classes": len(benchmark.novel),
            "novel_given": novel,
            "novel_found": health.get("novel", method.n_novel),  # without what was given up
            "streams": len(benchmark.beside(job.stream)),
            "rejected": len(stream.rejected),
            "warmup": config.get("warmup"),
            # A method that answers all rows again at the end is compared as one that waits.
            "answers": "end" if config.get("revise_at_end") else method.answers,
            "passes": method.passes,
            "trains": method.trains,
            "ms_per_batch": 1000 * steady,
            "warmup_s": clock.warmup_seconds,
            "total_s": result.timings["method"],
            "seconds": result.timings,
            "realignment_read_back": self._realigned.saved > realigned_before,
            "batches": result.batches,
            "peak_gb": None if saved() > before else peak,
            "stream_gb": None if saved() > before else stream_gb,
            "warmup_gb": None if saved() > before else warmup_gb,
            "fingerprint": vlm.fingerprint,
            "data": fingerprint,
            "data_notes": list(benchmark.notes),
            "health": health,
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
        }


def _gigabytes(peak: int | None, source: Source) -> float | None:
    """Without the decoded images that are kept from job to job: they are not the method's."""
    if peak is None:
        return None
    kept = source.images.nbytes if isinstance(source, Decoded) else 0
    return max(0, peak - kept) / 2**30

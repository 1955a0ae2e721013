"""Run what an experiment asks for and what is not on disk yet, row by row."""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ttgcd.bench.columns import CLICKS
from ttgcd.bench.conditions import conditions, save_manifest
from ttgcd.bench.experiment import Experiment, Target, experiment_files
from ttgcd.bench.results import Job, ResultsFile, Row, open_results, read_results
from ttgcd.errors import InputError

if TYPE_CHECKING:
    from ttgcd.datasets import Benchmark

Say = Callable[[str], None]


@dataclass
class Outcome:
    """What a bench run did."""

    measured: int = 0
    there_already: int = 0
    taken_over: int = 0
    failed: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Settings:
    """How to run, beside what to run."""

    data: Path | None
    out: Path
    limit: int | None = None
    workers: int = 1
    device: str = "auto"
    batch_size: int = 128
    threads: int | None = None  # of each worker; None shares the cores
    engine: Literal["local", "ray"] = "local"
    ray_address: str | None = None  # of an existing cluster; None starts one here
    cost: bool = False  # nothing is taken over or read back; every job in a process of its own


def plan(experiment: Experiment, settings: Settings, say: Say) -> list[Job]:
    """Every job of an experiment, those of one stream together.

    A benchmark whose data are not there is left out with a message, as long as one is there.
    """
    from ttgcd.datasets import load_benchmark
    from ttgcd.methods.registry import load_method

    configs = {v.label: load_method(v.method, **v.config).config() for v in experiment.variants}
    jobs: list[Job] = []
    missing: list[str] = []
    choices: set[str] = set()
    for target in experiment.targets:
        try:
            benchmark = load_benchmark(target.name, settings.data, **target.options)
        except InputError as error:
            missing.append(str(error))
            continue
        choices |= set(benchmark.every_stream)
        streams = _streams(target, benchmark, experiment.streams)
        for model in experiment.models:
            for stream in streams:
                jobs += [
                    Job(
                        experiment=experiment.name,
                        label=variant.label,
                        benchmark=target.name,
                        stream=stream,
                        method=variant.method,
                        model=model,
                        seed=seed,
                        novel=variant.novel or experiment.novel,
                        limit=settings.limit,
                        batch_size=settings.batch_size,
                        config=configs[variant.label],
                        options=target.options,
                        clicks=any(metric in CLICKS for metric in experiment.metrics),
                    )
                    for variant in experiment.variants
                    for seed in experiment.seeds
                ]
    unknown = set(experiment.streams or ()) - choices
    if unknown and choices:
        raise InputError(
            f"no stream {min(unknown)!r} here: choose from {', '.join(sorted(choices))}"
        )
    if not jobs:
        raise InputError("; ".join(missing) or "nothing to run: no method or no seed is left")
    for message in missing:
        say(f"left out: {message}")
    return jobs


def _streams(target: Target, benchmark: Benchmark, chosen: Sequence[str] | None) -> tuple[str, ...]:
    if chosen is not None:  # names of another benchmark's streams are not meant for this one
        return tuple(stream for stream in chosen if stream in benchmark.every_stream)
    if target.streams == "evaluation":
        return benchmark.streams
    if target.streams == "held_out":
        return benchmark.held_out
    return tuple(target.streams)


def is_cost(experiment: Experiment) -> bool:
    """Whether time and memory are what is measured."""
    return bool({"ms_per_batch", "warmup_s"} & set(experiment.metrics))


def run_experiment(experiment: Experiment, settings: Settings, say: Say = print) -> Outcome:
    """Measure every job that has no row yet; each row is on disk before the next begins."""
    jobs = plan(experiment, settings, say)
    if is_cost(experiment):
        settings = replace(settings, cost=True, workers=1, engine="local")
    outcome = Outcome()
    with open_results(settings.out / f"{experiment.name}.jsonl") as results:
        for note in results.notes:
            say(note)
        waiting, twins = _take_over(jobs, results, settings, outcome)
        say(
            f"{experiment.name}: {len(jobs)} rows, {outcome.there_already} there already, "
            f"{outcome.taken_over} taken over, {len(waiting)} streams to run"
        )
        threads = settings.threads or max(1, (os.cpu_count() or 1) // settings.workers)
        manifest = save_manifest(settings.out, conditions(threads, settings.device))
        groups = _groups(waiting, results.rows)
        began = time.monotonic()
        for job, row, error in _measured(groups, settings, threads):
            if row is None:
                outcome.failed.append(f"{job.benchmark} {job.stream} {job.label}: {error}")
                say(f"failed: {outcome.failed[-1]}")
                continue
            _same_weights(row, results)
            row["manifest"] = manifest
            results.append(row)
            for twin in twins.get(job.run_id, ()):
                results.append(_copied(row, twin))
            outcome.measured += 1
            done = outcome.measured + len(outcome.failed)
            left = (time.monotonic() - began) / done * (len(waiting) - done)
            metrics = row["metrics"]
            say(
                f"[{done}/{len(waiting)}] {job.benchmark} {job.stream} "
                f"{job.label} seed {job.seed}: All {metrics['all']:.2f} Known "
                f"{metrics['known']:.2f} Novel {metrics['novel']:.2f}, "
                f"{sum(row['seconds'].values()):.0f} s; about {left / 60:.0f} min left"
            )
    return outcome


def _take_over(
    jobs: Sequence[Job], results: ResultsFile, settings: Settings, outcome: Outcome
) -> tuple[list[Job], dict[str, list[Job]]]:
    """Jobs still to do, and for each of them the jobs that its row will serve as well.

    What another experiment, or another row of this one, measures in the same way is copied.
    """
    elsewhere = {} if settings.cost else rows_by_run(results.path, settings.out)
    waiting: list[Job] = []
    twins: dict[str, list[Job]] = {}
    for job in jobs:
        if job in results:
            outcome.there_already += 1
        elif job.run_id in elsewhere:
            results.append(_copied(elsewhere[job.run_id], job))
            outcome.taken_over += 1
        elif job.run_id in twins:
            twins[job.run_id].append(job)
        else:
            waiting.append(job)
            twins[job.run_id] = []
    return waiting, twins


def rows_by_run(first: Path, folder: Path) -> dict[str, Row]:
    """What is on disk, by what was measured; the experiment's own file comes first."""
    found: dict[str, Row] = {}
    for path in (first, *experiment_files(folder)):
        for row in read_results(path).rows:
            found.setdefault(row["run_id"], row)
    return found


def _copied(row: Row, job: Job) -> Row:
    source = row.get("taken_from", f"{row['experiment']}: {row['label']}")
    return {**row, "experiment": job.experiment, "label": job.label, "taken_from": source}


def _groups(jobs: Sequence[Job], rows: Sequence[Row]) -> list[list[tuple[Job, int | None]]]:
    """Jobs of one stream together, each with the estimate of L if an earlier row has it."""

    def stream_of(job: Any) -> tuple[Any, ...]:
        if isinstance(job, Job):
            job = asdict(job)
        keys = ("benchmark", "options", "stream", "model", "limit", "novel")
        return tuple(str(job[key]) for key in keys)

    estimates = {stream_of(r): r["novel_given"] for r in rows if r["novel"] != "given"}
    groups: dict[tuple[Any, ...], list[tuple[Job, int | None]]] = {}
    for job in jobs:
        key = stream_of(job)
        groups.setdefault(key, []).append((job, estimates.get(key)))
    return list(groups.values())


def _same_weights(row: Row, results: ResultsFile) -> None:
    for earlier in results.rows:
        if earlier["model"] == row["model"] and earlier["fingerprint"] != row["fingerprint"]:
            raise InputError(
                f"{results.path}: its rows were measured with other weights of {row['model']!r}; "
                "give another --out, or remove the old rows"
            )


Measured = tuple[Job, "Row | None", str]


def _measured(
    groups: list[list[tuple[Job, int | None]]], settings: Settings, threads: int
) -> Iterator[Measured]:
    if settings.cost:
        for group in groups:
            for one in group:
                yield from _in_processes([[one]], settings, threads)
        return
    if settings.engine == "ray":
        from ttgcd.bench.on_ray import measured_on_ray

        work = partial(_work, settings=settings, threads=threads)
        yield from measured_on_ray(groups, work, settings.workers, threads, settings.ray_address)
        return
    if settings.workers > 1 and len(groups) > 1:
        yield from _in_processes(groups, settings, threads)
        return
    yield from _work(groups, settings, threads)


def _work(
    groups: Iterator[Any] | Sequence[Any], settings: Settings, threads: int
) -> Iterator[Measured]:
    """Measure in this process."""
    import torch

    from ttgcd.bench.measure import Bench
    from ttgcd.storage.memory import keep_freed

    if not settings.cost:  # memory is measured there
        keep_freed()
    torch.set_num_threads(threads)
    bench = Bench(settings.data, settings.device, threads, settings.cost)
    for group in groups:
        for job, novel in group:
            try:
                yield job, bench.measure(job, novel), ""
            except InputError as error:
                yield job, None, str(error)
            except Exception as error:  # one method's fault must not cost the others their rows
                traceback.print_exc(file=sys.stderr)
                yield job, None, f"{type(error).__name__}: {error}"


def _in_processes(
    groups: list[list[tuple[Job, int | None]]], settings: Settings, threads: int
) -> Iterator[Measured]:
    """Measure in worker processes, one stream at a time each; rows come back one by one."""
    import multiprocessing

    context = multiprocessing.get_context("spawn")
    tasks, answers = context.Queue(), context.Queue()
    for group in groups:
        tasks.put(group)
    count = min(settings.workers, len(groups))
    for _ in range(count):
        tasks.put(None)
    arguments = (tasks, answers, settings, threads, os.getpid())
    workers = [context.Process(target=_worker, args=arguments, daemon=True) for _ in range(count)]
    for worker in workers:
        worker.start()
    running = count
    try:
        while running:
            answer = _next_answer(answers, workers)
            if answer is None:
                running -= 1
            else:
                yield answer
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()


def _next_answer(answers: Any, workers: Sequence[Any]) -> Measured | None:
    import queue

    while True:
        try:
            answer: Measured | None = answers.get(timeout=1.0)
            return answer
        except queue.Empty:
            for worker in workers:
                if worker.exitcode not in (None, 0):
                    raise InputError(
                        f"a worker process ended with code {worker.exitcode} (out of memory?); "
                        "rows so far are kept: start again with fewer --workers"
                    ) from None


def _worker(tasks: Any, answers: Any, settings: Settings, threads: int, parent: int) -> None:
    os.environ["OMP_NUM_THREADS"] = str(threads)

    def leave_with_parent() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    # A killed parent cannot stop its workers; they would go on for rows that nobody writes.
    threading.Thread(target=leave_with_parent, daemon=True).start()
    for measured in _work(iter(tasks.get, None), settings, threads):
        answers.put(measured)
    answers.put(None)

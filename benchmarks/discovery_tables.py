"""The tables of benchmarks/discovery.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from arrangements import SCENARIOS

Rows = list[dict[str, Any]]
Methods = dict[str, tuple[str, bool]]  # method, whether it is told L
GROUPS = {
    "IconShift, development": ("iconshift", True),
    "IconShift, other": ("iconshift", False),
    "CIFAR-10-C, development": ("cifar10-c", True),
    "CIFAR-10-C, other": ("cifar10-c", False),
}


def print_table(rows: Rows, methods: Methods) -> None:
    """Scenario by scenario: accuracy, counts, ids that moved, late classes, worst orders."""
    for scenario in SCENARIOS:
        mine = [row for row in rows if row["scenario"] == scenario]
        if mine:
            print(f"\n#### {scenario}\n")
            print_accuracy(mine, methods)
            print_counts(mine)
            print_moves(mine)
            print_late(mine, methods)
            print_worst(mine, methods)


def print_accuracy(rows: Rows, methods: Methods) -> None:
    """Mean All on arrival / at the end, by group of streams, and the seconds of the largest."""
    groups = {
        title: [r for r in rows if (r["benchmark"], r["development"]) == key]
        for title, key in GROUPS.items()
    }
    groups = {title: group for title, group in groups.items() if group}
    print("| mean All, arrival / final | " + " | ".join(groups) + " | seeds | seconds |")
    print("|---|" + "---:|" * (len(groups) + 2))
    for method in methods:
        cells = []
        for group in groups.values():
            mine = [r for r in group if r["method"] == method]
            first, last = ([r[when][0] for r in mine] for when in ("arrival", "final"))
            if not mine:
                cells.append("")
            elif first == last or methods[method][0] in ("kmeans", "ss-kmeans"):
                cells.append(f"{np.mean(last):.1f}")
            else:
                cells.append(f"{np.mean(first):.1f} / {np.mean(last):.1f}")
        all_ = [r for r in rows if r["method"] == method]
        if all_:
            seeds, slowest = len({r["seed"] for r in all_}), max(r["seconds"] for r in all_)
            print(f"| {method} | " + " | ".join(cells) + f" | {seeds} | {slowest:.0f} |")


def print_counts(rows: Rows) -> None:
    """How well L was counted."""
    counted = [r for r in rows if r["method"] == "scout, L unknown"]
    for held, group in (
        ("development", [r for r in counted if r["development"]]),
        ("other", [r for r in counted if not r["development"]]),
    ):
        judged = [r for r in group if r["judged"]]
        if not judged:
            continue
        true, found = (np.array([r[k] for r in judged]) for k in ("novel", "found"))
        inside = np.mean([r["range"][0] <= r["novel"] <= r["range"][1] for r in judged])
        error = np.median(np.abs(found - true) / np.maximum(true, 1))
        print(
            f"\nL unknown, {held}: {len(judged)} of {len(group)} streams judged, "
            f"median found {np.median(found):.0f} of {np.median(true):.0f}, median relative error "
            f"{100 * error:.0f} %, the range holds the truth on {100 * inside:.0f} %."
        )


def print_moves(rows: Rows) -> None:
    """Which part of the reservoir changed its id at refits, L given."""
    scouts = [r["moved"] for r in rows if r["method"] == "scout" and r["moved"]]
    if not scouts:
        return
    within, last = [m for moved in scouts for m in moved[:-1]], [moved[-1] for moved in scouts]
    first = f"{100 * np.mean(within):.1f} % at a refit within the stream and " if within else ""
    after = f"{100 * np.mean(last):.1f} % at the last one"
    print(f"\nOf the reservoir {first}{after} change id (means, L given).")


def print_late(rows: Rows, methods: Methods) -> None:
    for method in methods:
        mine = [r for r in rows if r["method"] == method and "late" in r]
        if mine:
            found, everything = (sum(r[k] for r in mine) for k in ("late_found", "late"))
            print(f"\n{method}: {found} of {everything} late classes own a category at the end.")


def print_worst(rows: Rows, methods: Methods) -> None:
    """The mean of the worst tenth of the orders of each stream, where there are enough of them."""
    for method in methods:
        streams: dict[str, list[float]] = {}
        for row in rows:
            if row["method"] == method:
                streams.setdefault(row["stream"], []).append(row["final"][0])
        enough = {name: sorted(all_) for name, all_ in streams.items() if len(all_) >= 10}
        if enough:
            cells = [
                f"{s} {np.mean(v[: len(v) // 10]):.1f} ({np.mean(v):.1f})"
                for s, v in enough.items()
            ]
            print(f"\n{method}, worst tenth of the orders (mean of all): {', '.join(cells)}.")


# -- what was promised ---------------------------------------------------------------------------


def print_promises(rows: Rows, results: Path) -> None:
    """The figures of the streams that the method was not developed on, one line a promise."""
    held = [row for row in rows if not row["development"]]
    shuffled = [row for row in held if row["scenario"] == "shuffled"]
    scout, means = by_stream(shuffled, "scout"), by_stream(shuffled, "k-means")
    arrival, counted = (
        by_stream(shuffled, "scout", "arrival"),
        by_stream(shuffled, "scout, L unknown"),
    )
    paper = realigned(results, set(scout))
    lost = [stream for stream in scout if scout[stream] < means[stream] - 1]
    print(f"\n#### The {len(scout)} streams not used for development\n")
    print("| All, mean over streams | arrival | final |\n|---|---:|---:|")
    print(f"| scout | {mean(arrival):.1f} | {mean(scout):.1f} |")
    print(f"| scout, L unknown | | {mean(counted):.1f} |")
    print(f"| k-means given K + L | | {mean(means):.1f} |")
    print(f"| PACT with re-alignment, {len(paper)} streams | | {mean(paper):.1f} |")
    print(
        f"\nAbove k-means: {mean(scout) - mean(means):+.1f} at the end, "
        f"{mean(arrival) - mean(means):+.1f} on arrival; above PACT: "
        f"{np.mean([scout[s] - paper[s] for s in paper]):+.1f}; L unknown against L given: "
        f"{mean(counted) - mean(scout):+.1f}. More than a point below k-means on {len(lost)} of "
        f"{len(scout)} streams{': ' + ', '.join(lost) if lost else ''}."
    )
    by_class = by_stream([row for row in held if row["scenario"] == "sorted"], "scout")
    if by_class:
        print(f"\nSorted against shuffled, at the end: {mean(by_class) - mean(scout):+.1f}.")


def by_stream(rows: Rows, method: str, when: str = "final") -> dict[str, float]:
    """Mean All over the seeds of every stream."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if row["method"] == method:
            found.setdefault(row["stream"], []).append(row[when][0])
    return {stream: float(np.mean(values)) for stream, values in found.items()}


def realigned(results: Path, streams: set[str]) -> dict[str, float]:
    """The paper's method as ``bench run`` measured it on whole streams."""
    found: dict[str, list[float]] = {}
    for name in ("main.jsonl", "iconshift.jsonl"):
        for line in (results / name).read_text().splitlines():
            row = json.loads(line)
            whole = row["limit"] is None and row["model"] == "mini" and row["novel"] == "given"
            if row["label"] == "PACT" and whole and row["stream"] in streams:
                found.setdefault(row["stream"], []).append(row["metrics"]["all"])
    return {stream: float(np.mean(values)) for stream, values in found.items()}


def mean(values: dict[str, float]) -> float:
    return float(np.mean(list(values.values()))) if values else float("nan")

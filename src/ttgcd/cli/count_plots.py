"""Pictures of ``ttgcd estimate``: how good each number of categories is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ttgcd.errors import InputError
from ttgcd.wording import counted, found

if TYPE_CHECKING:
    from ttgcd.discovery.count import Count
    from ttgcd.prototypes.count import CountEstimate


def require_plots() -> None:
    """Refuse where nothing can be drawn."""
    try:
        import matplotlib
    except ImportError as error:
        raise InputError("--plot needs matplotlib: pip install 'ttgcd[figures]'") from error
    matplotlib.use("Agg")


def plot_count(count: Count, path: Path) -> None:
    """Quality over numbers of categories, with the number, its range and the hills."""
    if count.curve is None:
        raise InputError(f"{counted(count.samples, 'sample')}: too few for a curve to plot")
    clusters, quality = count.curve.clusters, count.curve.quality
    known = count.known

    def draw(axis: Any) -> None:
        axis.plot(clusters, quality, "o-", color="tab:blue", markersize=3, label="quality")
        axis.axvspan(
            known + count.low,
            known + count.high,
            color="tab:orange",
            alpha=0.15,
            label=f"range ({count.low:,} to {count.high:,})",
        )
        if known:
            axis.axvline(known, color="tab:gray", linestyle=":", label=_known(known))
        told = found(count.novel, bool(known)) + ("" if count.judged else ", a guess")
        axis.axvline(known + count.novel, color="tab:orange", label=told)
        if hills := count.hills:
            tops = quality[np.searchsorted(clusters, hills)]
            axis.plot(hills, tops, "^", color="tab:green", label="hills")
        axis.set_xscale("log")
        ticks = clusters[np.unique(np.linspace(0, len(clusters) - 1, 8).round().astype(int))]
        axis.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
        axis.minorticks_off()
        what = "categories, known ones included" if known else "groups"
        axis.set(xlabel=what, ylabel="quality", title="How many?")

    _save(draw, path)


def plot_trace(estimate: CountEstimate, n_known: int, path: Path) -> None:
    """The silhouette of every number of clusters that was tried."""

    def draw(axis: Any) -> None:
        ks, scores = zip(*sorted(estimate.trace))
        axis.plot(ks, scores, "o-", color="tab:blue", label="evaluated")
        told = f"{estimate.novel} novel" if n_known else counted(estimate.k, "group")
        if n_known:
            axis.axvline(n_known, color="tab:gray", linestyle=":", label=_known(n_known))
        axis.axvline(estimate.k, color="tab:orange", label=f"estimate ({told})")
        axis.set(xlabel="clusters k", ylabel="silhouette", title="Number of classes")

    _save(draw, path)


def _known(number: int) -> str:
    return f"known classes ({number})"


def _save(draw: Callable[[Any], None], path: Path) -> None:
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(6, 4), layout="constrained")
    draw(axis)
    axis.grid(alpha=0.3)
    axis.legend()
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot write the plot ({error})") from error
    finally:
        pyplot.close(figure)

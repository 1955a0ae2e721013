"""ttgcd estimate: how many categories does a stream hold that have no name yet?"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ttgcd.cli.stream_options import (
    add_known,
    add_model_and_texts,
    add_reading,
    source_of,
    stream_settings,
)
from ttgcd.errors import InputError
from ttgcd.wording import as_options, counted, found, known_classes

if TYPE_CHECKING:
    import numpy as np

    from ttgcd.discovery.count import Count
    from ttgcd.prototypes.count import CountEstimate

#: Options that one of the two ways has no use for: their name on the command line by ours.
_SILHOUETTE = {
    **{"part": "from", "warmup": "warmup", "method": "method"},
    **{"kmeans": "kmeans", "max_clusters": "max_clusters"},
}
_DISCOVER = ("anchors", "word_embeddings", "logit_scale", "template", "vocabulary")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", nargs="+", help="what `ttgcd discover` takes: a folder, a list, shards, ..."
    )
    add_known(parser)
    parser.add_argument(
        "--by",
        choices=("discover", "silhouette"),
        default="discover",
        help="discover: the number that `ttgcd discover` finds with the same options; silhouette: "
        "the paper's estimate, k-means for several k (default: discover)",
    )
    add_model_and_texts(parser)
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="draw how good each number of categories is (.png, .pdf)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    add_reading(parser)
    paper = parser.add_argument_group("with --by silhouette")
    paper.add_argument(
        "--from",
        "--source",
        dest="part",
        choices=("buffer", "stream"),
        help="the first W images, or all of them as in the paper (default: buffer)",
    )
    paper.add_argument(
        "--warmup", type=int, metavar="W", help="images in the buffer (default: 1024)"
    )
    paper.add_argument(
        "--method", choices=("brent", "grid"), help="grid tries every k (default: brent)"
    )
    paper.add_argument(
        "--kmeans",
        choices=("auto", "plain", "mini-batch"),
        help="auto: plain up to 20,000 images, mini-batch above, which is quicker (default: auto)",
    )
    paper.add_argument("--max-clusters", type=int, help="upper bound of known plus novel classes")


def run(args: argparse.Namespace) -> int:
    from ttgcd.discovery.settings import Settings

    _check_options(args)
    settings = Settings(**stream_settings(args))
    names = settings.names()
    if args.plot is not None:
        from ttgcd.cli.count_plots import require_plots

        require_plots()  # before anything takes time
    if not args.quiet:
        print(known_classes(names), file=sys.stderr, flush=True)
    if args.by == "silhouette":
        return _by_silhouette(args, names)
    return _as_discover(args, settings)


def _check_options(args: argparse.Namespace) -> None:
    """Options are refused where they would be without effect."""
    if args.by == "discover":
        for name, option in _SILHOUETTE.items():
            if (value := getattr(args, name)) is not None:
                raise InputError(
                    f"`{option}={value}` is an option of the paper's estimate: add "
                    "`by=silhouette`, or leave it out: discover counts on all samples"
                )
    else:
        for name in _DISCOVER:
            if getattr(args, name) is not None:
                raise InputError(
                    f"`{name}=...` has no use with `by=silhouette`, which looks at the images "
                    "alone: leave out one of the two"
                )


# -- as discover does --------------------------------------------------------------------------


def _as_discover(args: argparse.Namespace, settings: Any) -> int:
    from ttgcd.cli.progress import shown
    from ttgcd.discovery.count import count_categories

    with shown(args.quiet) as progress:
        count = count_categories(source_of(args), settings, progress)
    print(json.dumps(_described(count, args.seed), indent=2) if args.json else _told(count))
    if args.plot is not None:
        from ttgcd.cli.count_plots import plot_count

        plot_count(count, args.plot)
    return 0


def _described(count: Count, seed: int) -> dict[str, Any]:
    return {
        "by": "discover",
        "novel": count.novel,
        "known": count.known,
        "clusters": count.known + count.novel,
        "range": [count.low, count.high],
        "judged": count.judged,
        "samples": count.samples,
        "rejected": count.rejected,
        "hills": count.hills,
        "curve": [] if count.curve is None else count.curve.as_json(),
        "seed": seed,
        "notes": [as_options(note) for note in count.notes],
    }


def _told(count: Count) -> str:
    """The number, its range, and what speaks against it."""
    said = found(count.novel, bool(count.known))
    if count.known:
        said += f" beside {counted(count.known, 'known class', 'known classes')}"
    if count.low < count.high:
        said += f", between {count.low:,} and {count.high:,},"
    said += f" in {counted(count.samples, 'sample')}"
    if count.rejected:
        said += f" ({count.rejected:,} could not be read)"
    lines = [f"{said}." if count.judged else f"A guess, not to be believed: {said}."]
    if len(hills := count.hills) > 1:
        numbers = " and ".join(f"{hill:,}" for hill in hills)
        what = "categories, known ones included," if count.known else "groups"
        lines.append(
            f"About {numbers} {what} describe them equally well; "
            "`ttgcd discover --level` shows coarser and finer ones."
        )
    return "\n".join([*lines, *(f"note: {as_options(note)}" for note in count.notes)])


# -- as in the paper ---------------------------------------------------------------------------


def _by_silhouette(args: argparse.Namespace, names: tuple[str, ...]) -> int:
    from ttgcd.prototypes.count import cluster_bounds, estimate_novel_count
    from ttgcd.streams.open import open_source

    n_known, part = len(names), args.part or "buffer"
    warmup = 1024 if args.warmup is None else args.warmup
    if warmup < 2:
        raise InputError(f"--warmup must be at least 2, got {warmup}")
    source = open_source(source_of(args))
    wanted = len(source) if part == "stream" else min(warmup, len(source))
    cluster_bounds(wanted, n_known, args.max_clusters)  # refuse before a model is loaded
    features = _features(args, source, wanted)

    def tell(k: int, score: float) -> None:
        if not args.quiet:
            print(f"k = {k}: silhouette {score:.4f}", file=sys.stderr, flush=True)

    method: Literal["brent", "grid"] = args.method or "brent"
    estimate = estimate_novel_count(
        features,
        n_known,
        k_max=args.max_clusters,
        method=method,
        kmeans=args.kmeans or "auto",
        seed=args.seed,
        progress=tell,
    )
    if args.json:
        answer = {
            "by": "silhouette",
            "novel": estimate.novel,
            "known": n_known,
            "clusters": estimate.k,
            "samples": len(features),
            "source": part,
            "method": method,
            "seed": args.seed,
            "trace": [[k, round(score, 6)] for k, score in estimate.trace],
        }
        print(json.dumps(answer, indent=2))
    else:
        print(_estimated(estimate, n_known, len(features)))
    if args.plot is not None:
        from ttgcd.cli.count_plots import plot_trace

        plot_trace(estimate, n_known, args.plot)
    return 0


def _estimated(estimate: CountEstimate, n_known: int, samples: int) -> str:
    said = f"{estimate.novel} novel classes beside {n_known} known ones: {estimate.k} clusters"
    if not n_known:
        said = counted(estimate.k, "group")
    return (
        f"{said} have the best silhouette of {len(estimate.trace)} tried, {samples:,} samples.\n"
        "The estimate tends to be too small where classes are many; take it as a start."
    )


def _features(args: argparse.Namespace, source, wanted: int) -> np.ndarray:  # type: ignore[no-untyped-def]
    """Zero-shot features of the first ``wanted`` samples in stream order."""
    from ttgcd.cli.progress import shown
    from ttgcd.engines.first import first_features
    from ttgcd.streams.stream import Stream

    if args.threads is not None:
        import torch

        torch.set_num_threads(args.threads)
    encoder = preprocess = None
    if source.kind == "images":
        from ttgcd.vlm import load_vlm

        vlm = load_vlm(args.model, args.device)
        encoder, preprocess = vlm.encoder(precision=args.precision), vlm.preprocess
    shuffle = None if args.in_order else args.seed
    stream = Stream(source, preprocess, args.batch_size, shuffle_seed=shuffle)
    with shown(args.quiet) as progress:
        return first_features(stream, encoder, wanted, progress)

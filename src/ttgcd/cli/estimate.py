"""ttgcd estimate: how many novel classes does a stream hold?"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from ttgcd.prototypes.count import CountEstimate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", nargs="+", help="what `ttgcd discover` takes: a folder, a list, shards, ..."
    )
    parser.add_argument("--known", help="'cat,dog' or @names.txt; without them groups are counted")
    parser.add_argument("--model", help="hub id, folder or 'mini' (default: as for discover)")
    parser.add_argument("--device", default="auto")
    parser.add_argument(
        "--from",
        "--source",
        dest="part",
        choices=("buffer", "stream"),
        default="buffer",
        help="the first W images, or all of them as in the paper (default: buffer)",
    )
    parser.add_argument("--warmup", type=int, default=1024, metavar="W", help="default: 1024")
    parser.add_argument("--method", choices=("brent", "grid"), default="brent")
    parser.add_argument(
        "--kmeans",
        choices=("auto", "plain", "mini-batch"),
        default="auto",
        help="auto: plain up to 20,000 images, mini-batch above (quicker)",
    )
    parser.add_argument("--max-clusters", type=int, help="upper bound of known plus novel classes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--in-order",
        action="store_true",
        help="take the first images as they come (default: draw them from all)",
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the trace (.png, .pdf)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> int:
    import json

    from ttgcd.errors import InputError
    from ttgcd.prototypes.count import cluster_bounds, estimate_novel_count
    from ttgcd.streams.labels import read_names
    from ttgcd.streams.open import open_source
    from ttgcd.wording import counted, known_classes

    names = () if args.known is None else read_names(args.known)
    n_known = len(names)
    if not args.quiet:
        print(known_classes(names), file=sys.stderr, flush=True)
    if args.warmup < 2:
        raise InputError(f"--warmup must be at least 2, got {args.warmup}")
    source = open_source(args.source[0] if len(args.source) == 1 else args.source)
    wanted = len(source) if args.part == "stream" else min(args.warmup, len(source))
    cluster_bounds(wanted, n_known, args.max_clusters)  # refuse before a model is loaded
    features = _features(args, source, wanted)

    def tell(k: int, score: float) -> None:
        if not args.quiet:
            print(f"k = {k}: silhouette {score:.4f}", file=sys.stderr, flush=True)

    estimate = estimate_novel_count(
        features,
        n_known,
        k_max=args.max_clusters,
        method=args.method,
        kmeans=args.kmeans,
        seed=args.seed,
        progress=tell,
    )
    if args.plot is not None:
        _plot(estimate, n_known, args.plot)
    if args.json:
        answer = {
            "novel": estimate.novel,
            "known": n_known,
            "clusters": estimate.k,
            "samples": len(features),
            "source": args.part,
            "method": args.method,
            "seed": args.seed,
            "trace": [[k, round(score, 6)] for k, score in estimate.trace],
        }
        print(json.dumps(answer, indent=2))
    else:
        said = f"{estimate.novel} novel classes beside {n_known} known ones: {estimate.k} clusters"
        if not n_known:
            said = counted(estimate.k, "group")
        print(
            f"{said} have the best silhouette of {len(estimate.trace)} tried, "
            f"{len(features):,} samples."
        )
        print("The estimate tends to be too small where classes are many; take it as a start.")
    return 0


def _features(args: argparse.Namespace, source, wanted: int) -> np.ndarray:  # type: ignore[no-untyped-def]
    """Zero-shot features of the first ``wanted`` samples in stream order."""
    from ttgcd.cli.progress import shown
    from ttgcd.engines.first import first_features
    from ttgcd.streams.stream import Stream

    encoder = preprocess = None
    if source.kind == "images":
        from ttgcd.cli.discover import default_model
        from ttgcd.vlm import load_vlm

        vlm = load_vlm(args.model or default_model(), args.device)
        encoder, preprocess = vlm.encoder(), vlm.preprocess
    shuffle = None if args.in_order else args.seed
    stream = Stream(source, preprocess, shuffle_seed=shuffle)
    with shown(args.quiet) as progress:
        return first_features(stream, encoder, wanted, progress)


def _plot(estimate: CountEstimate, n_known: int, path: Path) -> None:
    from ttgcd.errors import InputError
    from ttgcd.wording import counted

    try:
        import matplotlib
    except ImportError as error:
        raise InputError("--plot needs matplotlib: pip install 'ttgcd[figures]'") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(6, 4), layout="constrained")
    ks, scores = zip(*sorted(estimate.trace))
    axis.plot(ks, scores, "o-", color="tab:blue", label="evaluated")
    told = f"{estimate.novel} novel" if n_known else counted(estimate.k, "group")
    if n_known:
        axis.axvline(n_known, color="tab:gray", linestyle=":", label=f"known classes ({n_known})")
    axis.axvline(estimate.k, color="tab:orange", label=f"estimate ({told})")
    axis.set(xlabel="clusters k", ylabel="silhouette", title="Number of classes")
    axis.grid(alpha=0.3)
    axis.legend()
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot write the plot ({error})") from error
    finally:
        pyplot.close(figure)

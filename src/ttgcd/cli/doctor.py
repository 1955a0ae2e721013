"""ttgcd doctor: what works on this machine, what is missing, how fast it will be."""

from __future__ import annotations

import argparse

_SIGNS = {"ok": "ok     ", "note": "note   ", "missing": "missing", "bad": "BAD    "}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        help="measure this one (default: the paper's when it is in the cache, else mini)",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, ... (default: auto)")
    parser.add_argument(
        "--images", type=int, default=10_000, help="what a folder of so many costs (default: 10000)"
    )
    parser.add_argument("--no-speed", action="store_true", help="do not load a model")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    import json

    from ttgcd.cli.progress import duration
    from ttgcd.discovery.machine import as_json, best_model_at_hand, examine, pace
    from ttgcd.errors import InputError
    from ttgcd.wording import counted

    if args.images < 1:
        raise InputError(f"--images must be 1 or more, got {args.images}")
    findings = examine()
    bad = any(finding.level == "bad" for finding in findings)
    speed = None if args.no_speed or bad else pace(args.model or best_model_at_hand(), args.device)
    if args.json:
        print(json.dumps(as_json(findings, speed), indent=2))
        return int(bad)
    for finding in findings:
        advice = f"\n{'':21}{finding.advice}" if finding.advice else ""
        print(f"{_SIGNS[finding.level]}  {finding.topic:<10}  {finding.seen}{advice}")
    if speed is not None:
        rate = speed.images_per_second
        print(
            f"ok       speed       {speed.model}: {rate:,.1f} images a second "
            f"({speed.device}, {counted(speed.threads, 'thread')})\n"
            f"{'':21}encoding {counted(args.images, 'image')} takes about "
            f"{duration(args.images / rate)}"
        )
        print(
            f"{'':21}re-aligning the encoder (--realign, --preset paper) adds about "
            f"{duration(speed.seconds(args.images) - args.images / rate)} "
            f"(buffer of {speed.warmup:,}, {speed.epochs} epochs)"
        )
    return int(bad)

"""The whole campaign; exit code 1 if anything was lost, different or broken."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from faults.serving import ServiceKills


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="SIGKILLs (default: %(default)s)")
    parser.add_argument("--stops", type=int, default=20, help="SIGTERMs and SIGINTs")
    parser.add_argument("--images", type=int, default=10_000, help="damaged image files")
    parser.add_argument("--files", type=int, default=2_000, help="damaged files of other kinds")
    parser.add_argument("--edits", type=int, default=1_000, help="random sequences of edits")
    parser.add_argument("--service-kills", type=int, default=50, help="SIGKILLs of a service")
    parser.add_argument("--no-disk", action="store_true", help="leave out the full-disk runs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, help="folder to work in (default: a temporary one)")
    parser.add_argument("--only-service", action="store_true", help="the service's, no others")
    parser.add_argument("--short", action="store_true", help="a few of each, in a few seconds")
    args = parser.parse_args()
    if args.short:
        args.kills, args.stops, args.images, args.files, args.no_disk = 4, 2, 120, 60, True
        args.edits = 10
        args.service_kills = 0  # tests/service kills one
    if args.only_service:
        args.kills = args.stops = args.images = args.files = args.edits = 0
        args.no_disk = True
    with tempfile.TemporaryDirectory() as temporary:
        work = args.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        return campaign(args, work)


def campaign(args: argparse.Namespace, work: Path) -> int:
    from faults import disk, edits, kills
    from faults.fuzz import fuzz, image_seeds
    from faults.fuzz_files import file_seeds
    from faults.world import embeddings_case, images_case

    begun = time.monotonic()

    def tell(line: str) -> None:
        print(f"{time.monotonic() - begun:7.0f} s  {line}", file=sys.stderr, flush=True)

    results: list[kills.Kills | disk.Disk | object] = []
    kills.warm_up()  # before anything starts a thread
    if args.images:
        results.append(fuzz("images", image_seeds(), args.images, work, args.seed, tell))
    if args.files:
        results.append(fuzz("files", file_seeds(work), args.files, work, args.seed, tell))
    if args.kills:
        cases = [embeddings_case(work / "in"), images_case(work / "in")]
        if not args.short:
            cases += [
                embeddings_case(work / "in", shuffle=True),
                images_case(work / "in", shuffle=True),
            ]
        results.append(kills.campaign(cases, args.kills, work, args.stops, args.seed, tell))
    if args.edits:
        case = embeddings_case(work / "in")
        results.append(edits.campaign(case, args.edits, work, args.seed, tell))
    if args.service_kills:
        results.append(_service(args.service_kills, work, args.seed, tell))
    if not args.no_disk:
        results.append(disk.campaign(embeddings_case(work / "in"), work))
    for result in results:
        print("\n".join(result.lines()))  # type: ignore[attr-defined]
    bad = sum(result.bad for result in results)  # type: ignore[attr-defined]
    print(f"faults: {bad} in {time.monotonic() - begun:.0f} s")
    return 1 if bad else 0


def _service(kills: int, work: Path, seed: int, tell: Callable[[str], None]) -> ServiceKills:
    from faults.serving import campaign
    from ttgcd.datasets.iconshift import iconshift_classes, load_iconshift

    source, _ = load_iconshift("line")
    images = [(source.id(i), bytes(source.read(i))) for i in range(len(source))]
    place = work / "service"
    place.mkdir()
    return campaign(images, iconshift_classes()[0], kills, place, seed, tell)


if __name__ == "__main__":
    raise SystemExit(main())

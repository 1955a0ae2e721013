"""ttgcd export: a run's result in the tools that people use."""

from __future__ import annotations

import argparse
import sys

FORMATS = ("folders", "csv", "imagefolder", "labelstudio", "xmp", "webdataset")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("out_of", metavar="OUT", help="the folder that a finished run left")
    parser.add_argument("--to", choices=FORMATS, help="what to write")
    parser.add_argument(
        "--out",
        metavar="TARGET",
        help="where to; must not exist (default: OUT-FORMAT, "
        "for csv OUT.csv); '-' writes csv to standard output",
    )
    parser.add_argument(
        "--source", help="where the images are, if no longer where the run read them"
    )
    parser.add_argument(
        "--how",
        choices=("link", "symlink", "copy", "move"),
        default="link",
        help="folders: hard links (default), symbolic links, copies, or move the files",
    )
    parser.add_argument(
        "--keep-folders", action="store_true", help="folders: keep the sub-folders of the source"
    )
    parser.add_argument("--hidden", action="store_true", help="hidden categories too")
    parser.add_argument(
        "--shard", type=int, default=1000, help="webdataset: images in a shard (default: 1000)"
    )
    parser.add_argument(
        "--url-prefix",
        default="/data/local-files/?d=",
        metavar="TEXT",
        help="labelstudio: what stands before an image's path (default: %(default)s)",
    )
    parser.add_argument(
        "--undo", action="store_true", help="OUT is the target of a move: move the files back"
    )


def run(args: argparse.Namespace) -> int:
    from ttgcd.discovery.export import export, move_back
    from ttgcd.errors import InputError
    from ttgcd.wording import counted

    if args.undo:
        print(f"{counted(move_back(args.out_of), 'file')} moved back")
        return 0
    if args.to is None:
        raise InputError(f"say what to write: --to {' | '.join(FORMATS)}")
    done = export(
        args.out_of,
        args.to,
        args.out,
        args.source,
        how=args.how,
        keep_folders=args.keep_folders,
        hidden=args.hidden,
        shard=args.shard,
        url_prefix=args.url_prefix,
    )
    about = sys.stderr if args.out == "-" else sys.stdout
    for note in done.notes:
        print(f"note: {note}", file=about)
    print(f"{counted(done.images, 'image')}: {done.target}", file=about)
    if args.to == "folders" and args.how == "move":
        print(f"to move them back: ttgcd export {done.target} --undo")
    return 0

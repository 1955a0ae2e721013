"""Every other file that a run reads: states, checkpoints, tables, arrays, archives, names."""

from __future__ import annotations

import io
import os
import shutil
import signal
import tarfile
from pathlib import Path

import numpy as np

from faults.fuzz import Handle, Seed
from faults.world import KNOWN, icons
from ttgcd.errors import InputError


def file_seeds(work: Path) -> list[Seed]:
    """Sound files of each kind; what is beside them on disk is made once, in ``work``."""
    sound = work / "sound"
    shutil.rmtree(sound, ignore_errors=True)
    sound.mkdir(parents=True)
    return [
        *_state_seeds(sound),
        *_checkpoint_seeds(sound),
        *_array_seeds(),
        *_table_seeds(sound),
        *_text_seeds(),
    ]


def _refusable(handle: Handle) -> Handle:
    """A refusal is one line for the user."""

    def refused_or_read(path: Path) -> str:
        try:
            return handle(path)
        except InputError as error:
            line = str(error)
            if not line or "\n" in line:
                raise RuntimeError(f"a message of no or several lines: {line!r}") from error
            return line

    return refused_or_read


# -- states and checkpoints -----------------------------------------------------------------------


def _state_seeds(sound: Path) -> list[Seed]:
    from ttgcd.storage.state import State
    from ttgcd.storage.state_files import ARRAYS, VALUES, load_state, save_state

    folder = sound / "state"
    arrays = {"evidence": np.array([1.0, np.inf]), "known_prototypes": np.eye(2, 8)}
    save_state(folder, State(arrays, {"seen": 5, "config": {"lr": 0.01}, "known": ["a", "b"]}))

    def load(path: Path) -> str:
        other = VALUES if path.name == ARRAYS else ARRAYS
        shutil.copy(folder / other, path.parent)
        state = load_state(path.parent)
        for name, array in arrays.items():
            if not np.array_equal(state.arrays[name], array):
                raise RuntimeError("a damaged state was taken for sound")
        return "read"

    return [
        Seed("state", name, (folder / name).read_bytes(), _refusable(load))
        for name in (ARRAYS, VALUES)
    ]


def _checkpoint_seeds(sound: Path) -> list[Seed]:
    """Files of an interrupted run: going on gives the whole run's answers, or is refused."""
    whole, stopped = sound / "whole", sound / "stopped"
    _run(whole)
    _run(stopped, stop_at=96)
    expected = (whole / "assignments.parquet").read_bytes()
    names = [
        str(Path(here, name).relative_to(stopped))
        for here, _, files in os.walk(stopped)
        for name in files
        if name != "lock"
    ]

    def handle_as(name: str) -> Handle:
        def go_on(path: Path) -> str:
            out = path.parent / "out"
            shutil.rmtree(out, ignore_errors=True)  # there when a group is tried again
            shutil.copytree(stopped, out)
            shutil.copy(path, out / name)
            _run(out)
            if (out / "assignments.parquet").read_bytes() != expected:
                raise RuntimeError("going on from a damaged file gave other answers")
            return "read"

        return _refusable(go_on)

    return [
        Seed("checkpoint", Path(name).name, (stopped / name).read_bytes(), handle_as(name))
        for name in sorted(names)
    ]


def _run(out: Path, stop_at: int | None = None) -> None:
    from ttgcd.engines.folder import run_to_folder
    from ttgcd.engines.signals import Interrupted
    from ttgcd.methods.base import Task
    from ttgcd.methods.pact import Pact
    from ttgcd.streams.arrays import open_array
    from ttgcd.streams.stream import Stream

    rows = np.random.default_rng(1).normal(size=(160, 8)).astype(np.float32)
    anchors = np.eye(3, 8, dtype=np.float32)

    def progress(phase: str, done: int, total: int) -> None:
        if done == stop_at:
            os.kill(os.getpid(), signal.SIGTERM)

    task = Task(known=("a", "b", "c"), anchors=anchors, novel=2)
    try:
        run_to_folder(
            Pact(warmup=32),
            task,
            lambda place, index: Stream(open_array(rows), None, 16, None, place, index, workers=0),
            out,
            {"seed": 0},
            resume=True,
            progress=progress,
        )
    except Interrupted:
        if stop_at is None:
            raise


# -- inputs ---------------------------------------------------------------------------------------


def _array_seeds() -> list[Seed]:
    from ttgcd.discovery.inputs import read_texts

    rng = np.random.default_rng(2)
    seeds = []
    for array in (
        rng.normal(size=(9, 4)).astype(np.float32),
        rng.integers(0, 256, (5, 8, 8, 3), dtype=np.uint8),
        np.asfortranarray(rng.normal(size=(6, 3))),
    ):
        buffer = io.BytesIO()
        np.save(buffer, array)
        seeds.append(Seed("array", "rows.npy", buffer.getvalue(), _refusable(_read_source)))
    buffer = io.BytesIO()
    np.save(buffer, np.eye(3, 8, dtype=np.float32))

    def anchors(path: Path) -> str:
        read_texts("anchors", str(path), 3, 8)
        return "read"

    return [*seeds, Seed("anchors", "anchors.npy", buffer.getvalue(), _refusable(anchors))]


def _table_seeds(sound: Path) -> list[Seed]:
    """Parquet and tar inputs, and the table that ``ttgcd evaluate`` reads."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from ttgcd.evaluation.files import evaluate_files

    pictures = icons(6)
    tables = {
        "plain": pa.table({"id": list("abcdef"), "image": pictures}),
        "structs": pa.table({"image": [{"bytes": data, "path": "x.png"} for data in pictures]}),
    }
    seeds = []
    for table in tables.values():
        buffer = io.BytesIO()
        pq.write_table(table, buffer, row_group_size=2)
        seeds.append(Seed("parquet", "in.parquet", buffer.getvalue(), _refusable(_read_source)))
    for mode, name in (("w", "in.tar"), ("w:gz", "in.tar.gz")):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
            for number, data in enumerate(pictures):
                info = tarfile.TarInfo(f"{number}.png")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        seeds.append(Seed("tar", name, buffer.getvalue(), _refusable(_read_source)))

    labels = sound / "labels.csv"
    labels.write_text("id,label\n" + "".join(f"{i},a\n" for i in range(160)))

    def evaluate(path: Path) -> str:
        evaluate_files(path, labels, ["a", "b", "c"])
        return "read"

    assignments = (sound / "whole/assignments.parquet").read_bytes()
    return [*seeds, Seed("assignments", "assignments.parquet", assignments, _refusable(evaluate))]


def _read_source(path: Path) -> str:
    """Open, read and fingerprint all samples, as a run would."""
    from ttgcd.streams.open import open_source
    from ttgcd.streams.stream import Stream
    from ttgcd.vlm.preprocess import Preprocess

    source = open_source(str(path))
    try:
        source.fingerprint()
        preprocess = Preprocess(size=16) if source.kind == "images" else None
        stream = Stream(source, preprocess, 4, shuffle_seed=1, workers=0)
        accepted = sum(len(batch) for batch in stream)
        if accepted + len(stream.rejected) != len(source):
            raise RuntimeError("samples were neither accepted nor set aside")
    finally:
        source.close()
    return "read"


def _text_seeds() -> list[Seed]:
    from ttgcd.streams.labels import read_labels, read_names

    def names(path: Path) -> str:
        if not read_names(f"@{path}"):
            raise RuntimeError("no names and no refusal")
        return "read"

    def labels(path: Path) -> str:
        read_labels(path)
        return "read"

    text = "\n".join([*KNOWN, "größe", "海", "naïve café"]).encode()
    csv = b'id,label\n0,cat\n1,"sea lion, old"\n2,dog\n'
    paths = b"a.png\nb/c.jpg\n../d.tif\n"
    return [
        Seed("names", "names.txt", text, _refusable(names)),
        Seed("labels", "labels.csv", csv, _refusable(labels)),
        Seed("list", "list.txt", paths, _refusable(_read_source)),
    ]

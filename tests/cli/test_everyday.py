"""Commands as they are used from the second hour on, on a folder of pictures."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import ttgcd
from tests.streams.test_decode import png
from ttgcd.cli import main
from ttgcd.datasets.iconshift import load_iconshift
from ttgcd.errors import InputError

KNOWN = ["--known", "umbrella,cat", "--novel", "2", "--model", "mini", "--quiet"]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    source, _ = load_iconshift("handdrawn")
    for position in range(16):
        place = folder / ("monday" if position % 2 else "tuesday") / f"{position:02}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(source.read(position))
    return folder


@pytest.fixture
def found(photos: Path) -> Path:
    assert main(["discover", str(photos), *KNOWN, "--out", str(photos.parent / "found")]) == 0
    return photos.parent / "found"


def ids(out: Path) -> set[str]:
    return set(pq.read_table(out / "assignments.parquet").column("id").to_pylist())


def test_a_pattern_in_quotes_beside_another_source_stands_for_its_files(photos, tmp_path) -> None:
    given = [str(photos / "monday" / "*.png"), str(photos / "tuesday")]
    assert main(["discover", *given, *KNOWN, "--out", str(tmp_path / "out")]) == 0
    assert len(ids(tmp_path / "out")) == 16
    braces = str(photos / "monday" / "{01,03}.png")
    assert main(["discover", braces, given[1], *KNOWN, "--out", str(tmp_path / "braces")]) == 0
    assert len(ids(tmp_path / "braces")) == 10


def test_a_pattern_beside_another_source_that_matches_nothing_is_refused(
    photos, tmp_path, capsys
) -> None:
    given = [str(photos / "*.gif"), str(photos / "tuesday")]
    assert main(["discover", *given, *KNOWN, "--out", str(tmp_path / "out")]) == 2
    assert "no file matches" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_a_run_left_in_the_folder_is_no_input_of_the_next(photos, monkeypatch, capsys) -> None:
    monkeypatch.chdir(photos)
    assert main(["discover", ".", *KNOWN]) == 0
    first = ids(photos / "ttgcd-out")
    (photos / "ttgcd-out" / "left.png").write_bytes((photos / "monday" / "01.png").read_bytes())
    assert main(["discover", ".", *KNOWN, "--out", "again"]) == 0
    assert ids(photos / "again") == first and len(first) == 16
    assert "folder of a run was left out: ttgcd-out" in capsys.readouterr().out
    assert main(["discover", ".", *KNOWN, "--resume"]) == 0  # the input is what it was


def test_assign_tells_how_far_it_is_and_quiet_does_not(found, photos, capsys) -> None:
    assert main(["assign", str(found), str(photos)]) == 0
    said = capsys.readouterr()
    assert "assign: 16/16 images" in said.err and said.out.count("\n") == 17
    assert main(["assign", str(found), str(photos), "--quiet"]) == 0
    again = capsys.readouterr()
    assert again.err == "" and again.out == said.out


def test_estimate_tells_how_far_reading_is_and_quiet_does_not(photos, capsys) -> None:
    given = ["estimate", str(photos), "--known", "umbrella,cat", "--model", "mini"]
    assert main(given) == 0
    for by, phase in (("discover", "stream"), ("silhouette", "encode")):
        assert main([*given, "--by", by]) == 0
        assert f"{phase}: 16/16 images" in capsys.readouterr().err
        assert main([*given, "--by", by, "--quiet"]) == 0
        assert capsys.readouterr().err == ""


def test_ctrl_c_is_answered_at_once(photos, tmp_path) -> None:
    """A plug-in method holds the batch for as long as it takes; the signal comes in the middle."""
    (tmp_path / "slow.py").write_text(
        "import time\n"
        "from pathlib import Path\n"
        "from ttgcd.methods.pact import Pact\n"
        "class Slow(Pact):\n"
        "    name = 'slow'\n"
        "    def observe(self, batch):\n"
        "        Path('in-batch').touch()\n"
        "        while not Path('go').exists():\n"
        "            time.sleep(0.01)\n"
        "        return super().observe(batch)\n"
    )
    command = [sys.executable, "-m", "ttgcd", "discover", str(photos), *KNOWN]
    command += ["--method", "slow:Slow", "--out", "out"]
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
        # A run of the tests in the background ignores the signal, and its children would, too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stderr is not None
    try:
        deadline = time.monotonic() + 120
        while not (tmp_path / "in-batch").exists():
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said = b""
        while b"stopping after this batch" not in said:  # while the batch is still held
            line = process.stderr.readline()
            assert line, said
            said += line
        (tmp_path / "go").touch()
        assert process.wait(60) == 130
        assert b"--resume" in process.stderr.read()
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def test_the_summary_prints_what_to_type(photos, tmp_path, capsys) -> None:
    out = tmp_path / "found"
    assert main(["discover", str(photos), *KNOWN, "--out", str(out)]) == 0
    said = capsys.readouterr().out.splitlines()
    hint = next(line for line in said if line.startswith("to name it: "))
    *command, _ = shlex.split(hint.removeprefix("to name it: ttgcd "))
    assert main([*command, "toadstool"]) == 0
    name = command[-1]
    row = next(line.split() for line in said if line.strip().startswith(f"{name} "))
    records = json.loads((out / "categories.json").read_text())["categories"]
    renamed = next(record for record in records if record["name"] == "toadstool")
    assert row[row.index("id") + 1] == str(renamed["id"])


def test_csv_goes_to_standard_output_and_beside_the_run(found, monkeypatch, capfdbinary) -> None:
    monkeypatch.chdir(found.parent)
    assert main(["export", "found", "--to", "csv", "--out", "-"]) == 0
    printed = capfdbinary.readouterr().out
    assert not Path("-").exists()
    assert main(["export", "found", "--to", "csv"]) == 0
    assert Path("found.csv").read_bytes() == printed
    assert printed.startswith(b"id,category,kind,name") and printed.count(b"\n") == 17
    assert main(["export", "found", "--to", "folders", "--out", "-"]) == 2


def test_going_on_into_the_run_itself_is_refused_in_words(found, photos, capsys) -> None:
    given = ["discover", str(photos), "--from", str(found), "--out", str(found), "--quiet"]
    assert main(given) == 2
    said = capsys.readouterr().err
    assert "choose another --out" in said and "settings" not in said


def test_a_device_that_is_not_there_is_refused_in_one_short_line(photos, tmp_path, capsys) -> None:
    given = ["discover", str(photos), *KNOWN, "--out", str(tmp_path / "out"), "--device"]
    for device in ("mps", "abacus"):
        assert main([*given, device]) == 2
        said = capsys.readouterr().err
        assert f"device '{device}' cannot be used" in said and "--device cpu" in said
        assert len(said) < 150


def test_users_of_the_command_read_of_options_in_the_report_too(photos, tmp_path) -> None:
    given = [str(photos), "--known", "umbrella,cat", "--model", "mini", "--quiet"]
    assert main(["discover", *given, "--out", str(tmp_path / "out")]) == 0
    notes = json.loads((tmp_path / "out" / "run.json").read_text())["notes"]
    assert any("`novel=...`" in note for note in notes)
    page = (tmp_path / "out" / "report.html").read_text()
    listed = page.split('aria-label="Notes"')[1].split("</ul>")[0]
    assert "with --novel if you know it" in listed and "`" not in listed


def test_an_image_of_too_many_pixels_is_set_aside_with_its_size(photos, tmp_path) -> None:
    (photos / "huge.png").write_bytes(png(60_000, 60_000, 8, 2, b""))
    assert main(["discover", str(photos), *KNOWN, "--out", str(tmp_path / "out")]) == 0
    assert "too many pixels: 3,600,000,000 in all" in (tmp_path / "out/rejected.csv").read_text()


def test_a_dictionary_of_splits_is_refused_with_the_way_out() -> None:
    with pytest.raises(InputError, match=r"give one, as in data\['train'\]"):
        ttgcd.discover({"train": ["a.png"]}, known="cat", model="mini")

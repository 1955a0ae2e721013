"""The fault campaign in short; ``make faults`` runs all of it."""

from __future__ import annotations

import random
import re
import subprocess
import sys

from faults.mutations import mutate


def test_a_few_kills_and_damaged_files_do_no_harm():
    done = subprocess.run(
        [sys.executable, "-m", "faults", "--short"], capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stdout + done.stderr
    kills, runs = map(int, re.search(r"kills: (\d+) SIGKILLs in (\d+) runs", done.stdout).groups())
    assert kills >= 4
    assert runs >= 1
    assert "images: 120 damaged files" in done.stdout
    assert "files: 60 damaged files" in done.stdout
    assert "faults: 0 in" in done.stdout


def test_mutations_damage_nearly_every_file_and_are_repeatable():
    data = bytes(range(256)) * 4
    once = [mutate(data, random.Random(seed), data) for seed in range(200)]
    again = [mutate(data, random.Random(seed), data) for seed in range(200)]
    assert once == again
    assert sum(file != data for file in once) > 180
    assert len(set(once)) > 180

"""Completion: what a shell offers is what the parsers know."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ttgcd.cli import COMMANDS, main


def script(shell: str, capsys) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ttgcd", "dis"], ["discover"]),
        (["ttgcd", "discover", "--over"], ["--overwrite"]),
        (["ttgcd", "bench", "ta"], ["table"]),
        (["ttgcd", "bench", "table", "--for"], ["--format"]),
        (["ttgcd", "bench", "table", "main", "--format", "la"], ["latex"]),
        (["ttgcd", "discover", "pho"], ["photos"]),
    ],
)
def test_bash(words: list[str], expected: list[str], tmp_path: Path, capsys) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "c.sh").write_text(script("bash", capsys))
    quoted = " ".join(f"'{word}'" for word in words)
    code = f". ./c.sh; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _ttgcd; "
    code += 'printf "%s\\n" "${COMPREPLY[@]}"'
    out = subprocess.run(["bash", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert out.stdout.split() == expected and out.stderr == ""


def test_zsh_and_fish_know_every_command(capsys) -> None:
    zsh, fish = script("zsh", capsys), script("fish", capsys)
    assert zsh.startswith("autoload") and "complete -o filenames -F _ttgcd ttgcd" in zsh
    for name in COMMANDS:
        assert f"-a {name} " in fish and f'"{name}")' in zsh
    assert "-l format -x -a 'text markdown latex csv'" in fish

"""The command line as a Unix user meets it."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from ttgcd.cli import COMMANDS, main


def ttgcd(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ttgcd", *arguments], capture_output=True, text=True, **options
    )


def test_help_imports_nothing_heavy() -> None:
    """Held by what is imported rather than by the clock: torch alone takes seconds."""
    code = (
        "import sys, contextlib\n"
        "from ttgcd.cli import main\n"
        "with contextlib.suppress(SystemExit): main(['--help'])\n"
        "heavy = {'torch', 'transformers', 'numpy', 'sklearn', 'pyarrow', 'scipy', 'PIL'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)))\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "HEAVY []" in out.stdout
    assert all(name in out.stdout for name in COMMANDS)


def test_help_answers_in_under_a_second() -> None:
    """The best of five, so that a busy machine does not decide."""
    best = 60.0
    for _ in range(5):
        began = time.perf_counter()
        assert ttgcd("--help").returncode == 0
        best = min(best, time.perf_counter() - began)
    assert best < 1.0


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert f"ttgcd {command}" in capsys.readouterr().out


def test_an_unknown_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["sort"])
    assert stop.value.code == 2
    assert "sort" in capsys.readouterr().err

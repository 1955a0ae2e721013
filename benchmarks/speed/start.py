"""From the command to its end, for commands that do little.

python -m benchmarks.speed.start
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.speed.models import write_photographs
from benchmarks.speed.rows import Row, report


def best(*words: str, repeats: int = 3) -> float:
    """Processor time of a fresh Python, the least of a few.

    Starting is one thread's work, so this is the time that passes when nothing else runs.
    """
    command = [sys.executable, *words]
    spent = []
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(spent)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        images = write_photographs(Path(folder, "ten"), 10)
        discover = ["-m", "ttgcd", "discover", str(images), "--known", "house,flower"]
        torch = best("-c", "import torch")
        ten = best(
            *discover, "--novel", "2", "--model", "mini", "--out", str(Path(folder, "out")),
            "--overwrite", "--quiet", "--threads", "1",
        )  # fmt: skip
        rows = [
            Row("import ttgcd", 0.2, "at most", best("-c", "import ttgcd"), " s"),
            Row("ttgcd --help", 1.0, "at most", best("-m", "ttgcd", "--help"), " s"),
            Row("ttgcd discover ... --print-config", 0.5, "at most",
                best(*discover, "--print-config"), " s"),
            Row("ten images with mini, in all", 3.0, "at most", ten, " s",
                f"of it {torch:.1f} s `import torch`"),
        ]  # fmt: skip
    report(rows)


if __name__ == "__main__":
    main()

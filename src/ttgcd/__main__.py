"""``python -m ttgcd``."""

from __future__ import annotations

from ttgcd.cli import main

raise SystemExit(main())

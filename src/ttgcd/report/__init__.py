"""The report of a run: one page, drawn from the files that the run left."""

from __future__ import annotations

from ttgcd.report.page import write_report
from ttgcd.report.summary import StreamSummary

__all__ = ["StreamSummary", "write_report"]

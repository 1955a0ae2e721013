"""The self-contained report: a summary of the stream, pictures, one HTML page."""

from __future__ import annotations

from ttgcd.report.page import write_report
from ttgcd.report.summary import StreamSummary
from ttgcd.report.thumbnails import thumbnail

__all__ = ["StreamSummary", "thumbnail", "write_report"]

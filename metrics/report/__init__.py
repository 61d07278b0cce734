"""One self-contained HTML file about one run: facts, tables and charts, no network needed."""

from metrics.report.page import write_report

__all__ = ["write_report"]

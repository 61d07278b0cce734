"""Two runs side by side: whether counts, bytes and order agree, how far the times are apart.

Also a run against its prediction. The first run is the reference of every relative error.
"""

from metrics.compare.comparison import Comparison, compare
from metrics.compare.page import write_comparison
from metrics.compare.text import comparison_tables

__all__ = ["Comparison", "compare", "comparison_tables", "write_comparison"]

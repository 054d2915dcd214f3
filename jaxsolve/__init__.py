"""Predict, simulate and judge the training dynamics of neural networks and learned solvers."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._montecarlo import Ensemble, Histogram, draws, logarithmic_edges, monte_carlo

__version__ = "0.1.0"
__all__ = ["Ensemble", "Histogram", "draws", "logarithmic_edges", "monte_carlo"]


def __getattr__(name: str):
    """Public names of the ground floor, loaded when they are asked for."""
    if name in __all__:
        return getattr(importlib.import_module("._montecarlo", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

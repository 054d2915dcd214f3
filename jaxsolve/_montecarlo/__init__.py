"""Monte Carlo over keys: stacked draws, and streaming statistics of as many draws as one likes."""

from ._draws import draws
from ._engine import monte_carlo
from ._ensemble import Ensemble, Histogram, logarithmic_edges

__all__ = ["Ensemble", "Histogram", "draws", "logarithmic_edges", "monte_carlo"]

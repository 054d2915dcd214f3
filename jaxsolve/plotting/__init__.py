"""Figures of evidence: arrays to draw, functions that draw them on an axis, and whole figures of a run.

This package imports matplotlib; nothing else in the library does, so import it where figures are made.
"""

from ._comparison import COMPARED, draw_comparison
from ._data import (
    Band,
    Distribution,
    PowerLaw,
    Ratios,
    Standardised,
    Violations,
    bound_violations,
    curve_band,
    distribution,
    factors,
    local_errors,
    logarithmic_grid,
    power_law,
    relative_differences,
    spans_decades,
    standardised_deviations,
)
from ._evidence import Mark, draw_evidence
from ._figure import draw_claim, draw_group, printed_marks, save_claim_figure, to_png

__all__ = [
    "COMPARED",
    "Band",
    "Distribution",
    "Mark",
    "PowerLaw",
    "Ratios",
    "Standardised",
    "Violations",
    "bound_violations",
    "curve_band",
    "distribution",
    "draw_claim",
    "draw_comparison",
    "draw_evidence",
    "draw_group",
    "factors",
    "local_errors",
    "logarithmic_grid",
    "power_law",
    "printed_marks",
    "relative_differences",
    "save_claim_figure",
    "spans_decades",
    "standardised_deviations",
    "to_png",
]

"""Figures of evidence: arrays to draw, functions that draw them on an axis, and whole figures of a run.

This package imports matplotlib; nothing else in the library does, so import it where figures are made.
"""

from ._closure import draw_closure_curves, draw_stability_map
from ._closure_data import ClosureCurves, StabilityMap, closure_curves, stability_map
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
from ._erosion import draw_erosion_histogram, draw_erosion_shares
from ._erosion_data import ErosionHistogram, ErosionShares, erosion_histogram, erosion_shares
from ._evidence import Mark, draw_evidence
from ._feedback import draw_alignment_tails, draw_worst_coverage
from ._feedback_data import AlignmentTails, WorstCoverage, alignment_tails, worst_coverages
from ._figure import draw_claim, draw_group, printed_marks, save_claim_figure, to_png
from ._gallery import GALLERY, learned_gain_data, save_gallery_figure
from ._parametric import draw_certified_errors
from ._parametric_data import CertifiedErrors, certified_errors
from ._solver import (
    draw_attention_modes,
    draw_contraction,
    draw_gain_spectrum,
    draw_identity_errors,
    draw_order_parameters,
    draw_phase_portrait,
    draw_plateaus,
    draw_risk_overlay,
    save_gain_animation,
)
from ._solver_data import (
    AttentionModes,
    GainSpectrum,
    OrderParameterPath,
    PhasePath,
    RiskOverlay,
    attention_modes,
    gain_spectrum,
    order_parameter_path,
    phase_path,
    risk_overlay,
)
from ._sources import draw_composition, draw_diagnosis, draw_scaling_axis
from ._sources_data import CauseShares, CompositionPath, ScalingAxis, cause_shares, composition_path, scaling_axis

__all__ = [
    "COMPARED",
    "GALLERY",
    "AlignmentTails",
    "AttentionModes",
    "Band",
    "CauseShares",
    "CertifiedErrors",
    "ClosureCurves",
    "CompositionPath",
    "Distribution",
    "ErosionHistogram",
    "ErosionShares",
    "GainSpectrum",
    "Mark",
    "OrderParameterPath",
    "PhasePath",
    "PowerLaw",
    "Ratios",
    "RiskOverlay",
    "ScalingAxis",
    "StabilityMap",
    "Standardised",
    "Violations",
    "WorstCoverage",
    "alignment_tails",
    "attention_modes",
    "bound_violations",
    "cause_shares",
    "certified_errors",
    "closure_curves",
    "composition_path",
    "curve_band",
    "distribution",
    "draw_alignment_tails",
    "draw_attention_modes",
    "draw_certified_errors",
    "draw_claim",
    "draw_closure_curves",
    "draw_comparison",
    "draw_composition",
    "draw_contraction",
    "draw_diagnosis",
    "draw_erosion_histogram",
    "draw_erosion_shares",
    "draw_evidence",
    "draw_gain_spectrum",
    "draw_group",
    "draw_identity_errors",
    "draw_order_parameters",
    "draw_phase_portrait",
    "draw_plateaus",
    "draw_risk_overlay",
    "draw_scaling_axis",
    "draw_stability_map",
    "draw_worst_coverage",
    "erosion_histogram",
    "erosion_shares",
    "factors",
    "gain_spectrum",
    "learned_gain_data",
    "local_errors",
    "logarithmic_grid",
    "order_parameter_path",
    "phase_path",
    "power_law",
    "printed_marks",
    "relative_differences",
    "risk_overlay",
    "save_claim_figure",
    "save_gain_animation",
    "save_gallery_figure",
    "scaling_axis",
    "spans_decades",
    "stability_map",
    "standardised_deviations",
    "to_png",
    "worst_coverages",
]

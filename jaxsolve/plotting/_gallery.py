"""Figures of small runs that need no folder: each trains what it shows, in seconds."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from matplotlib.figure import Figure

from .._files import atomic_write
from ._figure import to_png
from ._gallery_feedback import alignment_tail, feedback_coverage, initial_erosion
from ._gallery_solver import (
    attention_mode_maps,
    attention_plateaus,
    certified_risk,
    closure_stability,
    identity_errors,
    learned_gain,
    learned_gain_data,
    order_parameter_paths,
    phase_portrait,
    population_closure,
)
from ._gallery_sources import composition_bars, error_diagnosis, parametric_certificate, scaling_axes
from ._solver import (
    save_gain_animation,
)

GALLERY: Mapping[str, Callable[[], Figure]] = MappingProxyType(
    {
        "alignment-tail": alignment_tail,
        "attention-modes": attention_mode_maps,
        "attention-plateaus": attention_plateaus,
        "certified-risk": certified_risk,
        "closure-stability": closure_stability,
        "composition-bars": composition_bars,
        "error-diagnosis": error_diagnosis,
        "feedback-coverage": feedback_coverage,
        "identity-errors": identity_errors,
        "initial-erosion": initial_erosion,
        "learned-gain": learned_gain,
        "order-parameters": order_parameter_paths,
        "parametric-certificate": parametric_certificate,
        "phase-portrait": phase_portrait,
        "population-closure": population_closure,
        "scaling-axes": scaling_axes,
    }
)
"""Figures by name, in alphabetical order; each function takes nothing and makes its own small run."""


def save_gallery_figure(name: str, directory: Path) -> tuple[Path, ...]:
    """Make a picture of the gallery and write it to ``directory``; ``learned-gain`` comes with its animation.

    Returns
    -------
    tuple[Path, ...]
        The files written: ``<name>.png``, and ``<name>.gif`` where there is an animation.

    Raises
    ------
    OSError
        Where a file cannot be written.
    """
    picture = directory / f"{name}.png"
    atomic_write(picture, to_png(GALLERY[name]()))
    if name != "learned-gain":
        return (picture,)
    animation = directory / f"{name}.gif"
    save_gain_animation(animation, learned_gain_data())
    return picture, animation

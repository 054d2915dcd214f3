"""What the figures of error sources show, as arrays."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from .._types import ArrayLike
from ..certificates import Diagnosis, compose_risk


class CompositionPath(NamedTuple):
    """The risk of a composed run and its parts after so many training steps, from [`composition_path`][].

    Attributes
    ----------
    steps
        Training steps after which the preconditioner was saved.
    total, decoder, floor, interaction
        As in [`jaxsolve.certificates.Composition`][], at the last depth.
    """

    steps: Int[np.ndarray, " saved"]
    total: Float[np.ndarray, " saved"]
    decoder: Float[np.ndarray, " saved"]
    floor: Float[np.ndarray, " saved"]
    interaction: Float[np.ndarray, " saved"]


class ScalingAxis(NamedTuple):
    """A measured error over a sample size, with standard errors and a prediction, from [`scaling_axis`][].

    Attributes
    ----------
    sizes
        Prompt sizes or numbers of tasks.
    errors, standard_errors
        Measured.
    exact
        Predicted at the same sizes, or ``None``.
    slope
        Of a line through the logarithms, by least squares.
    """

    sizes: Float[np.ndarray, " points"]
    errors: Float[np.ndarray, " points"]
    standard_errors: Float[np.ndarray, " points"]
    exact: Float[np.ndarray, " points"] | None
    slope: float


class CauseShares(NamedTuple):
    """Diagnoses side by side, from [`cause_shares`][].

    Attributes
    ----------
    names
        One per diagnosis.
    parts, standard_errors
        Of the four causes, over the total.
    remainders
        Over the total.
    verdicts
        The dominant cause, with "not clear" where another one is within three standard errors.
    """

    names: tuple[str, ...]
    parts: Float[np.ndarray, "diagnoses 4"]
    standard_errors: Float[np.ndarray, "diagnoses 4"]
    remainders: Float[np.ndarray, " diagnoses"]
    verdicts: tuple[str, ...]


def composition_path(
    preconditioners: Float[ArrayLike, "saved size size"],
    estimates: Float[ArrayLike, "tasks size size"],
    right_hand_sides: Float[ArrayLike, "tasks size"],
    solutions: Float[ArrayLike, "tasks size"],
    steps: Int[ArrayLike, " saved"],
    *,
    depth: int,
) -> CompositionPath:
    """The split of the risk for saved preconditioners, starts at zero.

    Raises
    ------
    ValueError
        As [`jaxsolve.certificates.compose_risk`][] does.
    """
    operators, sides, wanted = (jnp.asarray(array) for array in (estimates, right_hand_sides, solutions))
    found = [
        compose_risk(jnp.asarray(matrix), operators, sides, wanted, jnp.zeros_like(wanted), depth=depth)
        for matrix in np.asarray(preconditioners)
    ]
    rows = [(one.total[-1], one.decoder[-1], one.floor, one.interaction[-1]) for one in found]
    total, decoder, floor, interaction = np.asarray(rows, float).T
    return CompositionPath(np.asarray(steps), total, decoder, floor, interaction)


def scaling_axis(
    sizes: Float[ArrayLike, " points"],
    replicates: Float[ArrayLike, "replicates points"],
    exact: Float[ArrayLike, " points"] | None = None,
) -> ScalingAxis:
    """Means, standard errors and the slope of an error measured several times at several sizes.

    Raises
    ------
    ValueError
        Where a mean error is not positive, and has no logarithm.

    >>> scaling_axis(np.array([1.0, 2.0, 4.0]), np.array([[4.0, 2.0, 1.0], [4.0, 2.0, 1.0]])).slope
    -1.0
    """
    values, sizes = np.asarray(replicates, float), np.asarray(sizes, float)
    errors = values.mean(axis=0)
    if not (errors > 0).all():
        raise ValueError(f"Errors on a scaling axis are positive; got {errors}. Subtract less, or average over more.")
    slope = float(np.polyfit(np.log(sizes), np.log(errors), 1)[0])
    scatter = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return ScalingAxis(sizes, errors, scatter, None if exact is None else np.asarray(exact, float), round(slope, 12))


def cause_shares(diagnoses: dict[str, Diagnosis]) -> CauseShares:
    """Shares of the causes of several diagnoses, by name."""
    found = tuple(diagnoses.values())
    return CauseShares(
        tuple(diagnoses),
        np.stack([np.asarray(one.shares, float) for one in found]),
        np.stack([np.asarray(one.standard_errors / one.total, float) for one in found]),
        np.array([float(one.remainder / one.total) for one in found]),
        tuple(one.dominant if one.clear else f"{one.dominant}, not clear" for one in found),
    )

"""What predictions and measurements are made of."""

from collections.abc import Callable
from typing import TypeAlias

import equinox as eqx
import jax
from jaxtyping import Array, Float

from .._types import ArrayLike


class Curve(eqx.Module):
    """A quantity over a grid.

    Attributes
    ----------
    grid
        Where the quantity is given: depths, steps, sizes.
    value
        One entry per grid point along the first axis. A measurement over replicates that must all satisfy a
        statement has the replicates in front.
    standard_error
        Standard error of ``value`` where it is a mean over replicates.
    """

    grid: Float[Array, " points"]
    value: Float[Array, "..."]
    standard_error: Float[Array, "..."] | None = None


class Law(eqx.Module):
    """A panel of predicted distributions.

    Attributes
    ----------
    cdf
        Distribution function: takes values ``(draws, panel)`` and returns probabilities of the same shape.
    mean, variance
        First two moments of each member of the panel.
    """

    cdf: Callable[[ArrayLike], ArrayLike]
    mean: Float[Array, " panel"]
    variance: Float[Array, " panel"]


class Samples(eqx.Module):
    """Draws from a panel of distributions; axis 0 runs over draws."""

    values: Float[Array, "draws panel"]


Evidence: TypeAlias = Curve | Law | Samples


class Pair(eqx.Module):
    """A prediction and the measurement it is held against.

    Raises
    ------
    ValueError
        Where the two sides are not a curve and a curve of the same grid, or a law and samples of its panel.
    """

    predicted: Curve | Law
    measured: Curve | Samples

    def __check_init__(self):
        predicted, measured = self.predicted, self.measured
        if isinstance(predicted, Curve) and isinstance(measured, Curve):
            if predicted.grid.shape != measured.grid.shape:
                raise ValueError(
                    f"Both sides of a pair stand on one grid; got {predicted.grid.shape[0]} predicted and "
                    f"{measured.grid.shape[0]} measured points. Pass the same grid to predict and to simulate."
                )
        elif isinstance(predicted, Law) and isinstance(measured, Samples):
            if measured.values.ndim != 2 or measured.values.shape[1:] != predicted.mean.shape:
                raise ValueError(
                    f"Samples have shape (draws, panel) with the panel of the law; got {measured.values.shape} "
                    f"for a panel of {predicted.mean.shape}."
                )
        else:
            raise ValueError(
                "A pair holds a Curve against a Curve or a Law against Samples; got "
                f"{type(predicted).__name__} against {type(measured).__name__}."
            )


def dtypes(evidence: Evidence) -> set:
    """The floating dtypes of a piece of evidence; the tables inside a distribution function do not count."""
    values = (evidence.mean, evidence.variance) if isinstance(evidence, Law) else evidence
    return {leaf.dtype for leaf in jax.tree.leaves(eqx.filter(values, eqx.is_inexact_array))}

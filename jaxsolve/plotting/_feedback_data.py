"""What the figures of feedback show, as arrays: laws of its alignment and what ensembles cover, without drawing."""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._types import Key
from ..feedback import (
    AbstractFeedbackEnsemble,
    SquaredCosineLaw,
    draw_squared_cosines,
    finite_sample_coverage,
    sampled_second_moment,
    worst_coverage,
)


class AlignmentTails(NamedTuple):
    """Chances of an alignment against its cost.

    Attributes
    ----------
    dimensions
        `D` of each row.
    squared_cosines
        `q`, for each dimension.
    predicted, measured
        `Pr(Q ≥ q)`, exact and among the draws.
    draws
        How many.
    """

    dimensions: Float[np.ndarray, " dimensions"]
    squared_cosines: Float[np.ndarray, "dimensions points"]
    predicted: Float[np.ndarray, "dimensions points"]
    measured: Float[np.ndarray, "dimensions points"]
    draws: int


class WorstCoverage(NamedTuple):
    """Smallest eigenvalues of second moments of feedback, times `D`.

    Attributes
    ----------
    names
        Of the ensembles.
    draws
        Numbers of draws.
    sampled
        Of sampled second moments.
    exact
        Of the law: at most 1.
    edge
        The Marchenko–Pastur edge of isotropic draws.
    """

    names: tuple[str, ...]
    draws: np.ndarray
    sampled: Float[np.ndarray, "ensembles draws"]
    exact: Float[np.ndarray, " ensembles"]
    edge: Float[np.ndarray, " draws"]


def alignment_tails(
    dimensions: Float[np.ndarray, " dimensions"], *, draws: int, points: int = 24, key: Key
) -> AlignmentTails:
    """Exact and empirical chances, at thresholds from a tenth to twelve times the mean `1/D`.

    Raises
    ------
    ValueError
        For dimensions below 2 and fewer than one draw.
    """
    sizes = np.asarray(dimensions, float)
    thresholds = np.minimum(np.geomspace(0.1, 12, points)[None] / sizes[:, None], 1)
    drawn = np.asarray(draw_squared_cosines(jnp.asarray(sizes), draws, key=key))
    measured = (drawn[:, :, None] >= thresholds[None]).mean(axis=0)
    predicted = np.exp(SquaredCosineLaw(sizes[:, None]).log_survival(thresholds))
    return AlignmentTails(sizes, thresholds, predicted, measured, draws)


def worst_coverages(
    ensembles: Mapping[str, AbstractFeedbackEnsemble], draws: tuple[int, ...], *, key: Key
) -> WorstCoverage:
    """Sampled and exact worst coverages of ensembles of one dimension, times that dimension.

    Raises
    ------
    ValueError
        Where the ensembles have no common dimension.
    """
    sizes = {ensemble.dimension for ensemble in ensembles.values()}
    if len(sizes) != 1:
        raise ValueError(f"Coverages are compared in one dimension; got ensembles of {sorted(sizes)} entries.")
    (size,) = sizes
    sampled = np.empty((len(ensembles), len(draws)))
    for row, ensemble in enumerate(ensembles.values()):
        for column, count in enumerate(draws):
            moment = sampled_second_moment(ensemble, count, key=jax.random.fold_in(key, row))
            sampled[row, column] = size * np.linalg.eigvalsh(np.asarray(moment))[0]
    exact = [size * worst_coverage(ensemble) for ensemble in ensembles.values()]
    edge = [size * finite_sample_coverage(size, count) for count in draws]
    return WorstCoverage(tuple(ensembles), np.asarray(draws), sampled, np.asarray(exact), np.asarray(edge))

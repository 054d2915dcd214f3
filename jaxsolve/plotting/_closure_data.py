"""What the figures of closed population dynamics show, as arrays, without drawing."""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from .._types import ArrayLike
from ..curves import commuting_descent, commuting_loss, independent_saddle_ratio, population_descent
from ..solver import population_loss


class ClosureCurves(NamedTuple):
    """Training of all entries of a preconditioner, and of the scalars that close.

    Attributes
    ----------
    closed
        Population loss along the scalar recursion, half the mean square over unknowns.
    full
        The same along descent on the whole matrix.
    off_diagonal
        Largest entry off the diagonal of the whole matrix, over its largest entry.
    """

    closed: Float[np.ndarray, " states"]
    full: Float[np.ndarray, " states"]
    off_diagonal: Float[np.ndarray, " states"]


class StabilityMap(NamedTuple):
    """Where diagonal training is a saddle, for tasks whose eigenvalues are independent and uniform.

    Attributes
    ----------
    depths, spreads
        `L`, and half the width of the law of eigenvalues with mean 1.
    ratios
        `ρ` of [`jaxsolve.curves.independent_saddle_ratio`][]; a saddle where it exceeds 1.
    """

    depths: Int[np.ndarray, " depths"]
    spreads: Float[np.ndarray, " spreads"]
    ratios: Float[np.ndarray, "spreads depths"]


def closure_curves(
    gains: Float[ArrayLike, " size"],
    eigenvalues: Float[ArrayLike, "tasks size"],
    *,
    disturbance: Float[ArrayLike, "size size"],
    depth: int,
    learning_rate: float,
    steps: int,
) -> ClosureCurves:
    """Descent from `diag(gains) + disturbance` for tasks `diag(h)` and `S = I`, and from the gains alone."""
    start, spectra = jnp.asarray(gains, float), jnp.asarray(eigenvalues, float)
    identity, rate = jnp.eye(len(start)), jnp.asarray(learning_rate, float)
    path = commuting_descent(start, spectra, jnp.ones(len(start)), depth=depth, learning_rate=rate, steps=steps)
    operators = spectra[:, :, None] * identity[None]
    matrices = population_descent(
        jnp.diag(start) + jnp.asarray(disturbance), operators, identity, depth=depth, learning_rate=rate, steps=steps
    )
    shown = range(0, steps + 1, max(1, steps // 60))
    closed = [commuting_loss(path[step], spectra, jnp.ones(len(start)), depth=depth) for step in shown]
    full = [population_loss(matrices[step], operators, identity, depth=depth) for step in shown]
    sizes = np.abs(np.asarray(matrices[np.asarray(shown)]))
    off = sizes * (1 - np.eye(len(start)))
    share = off.max(axis=(1, 2)) / sizes.max(axis=(1, 2))
    return ClosureCurves(np.asarray(closed), np.asarray(full), share)


def stability_map(depths: Sequence[int], spreads: Float[ArrayLike, " spreads"]) -> StabilityMap:
    """The ratio over depths and spreads, by Gauss–Legendre quadrature with 64 nodes.

    >>> stability_map([2, 4], np.array([0.3])).ratios.round(2).tolist()
    [[0.98, 1.43]]
    """
    nodes, weights = np.polynomial.legendre.leggauss(64)
    ratios = [
        [
            independent_saddle_ratio(jnp.asarray(1 + spread * nodes), jnp.asarray(weights / 2), depth=depth)
            for depth in depths
        ]
        for spread in np.asarray(spreads)
    ]
    return StabilityMap(np.asarray(depths), np.asarray(spreads), np.asarray(ratios, float))

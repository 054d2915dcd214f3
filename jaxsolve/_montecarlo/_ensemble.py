"""What a run of draws has given."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float, PyTree

from ._checkpoint import State
from ._merge import Moments
from ._program import Plan, Range


class Bracket(NamedTuple):
    """Two ends between which a number lies, both of the shape of a draw."""

    low: PyTree
    high: PyTree


@dataclass(frozen=True, eq=False)
class Histogram:
    """Exact counts of draws between fixed edges.

    Attributes
    ----------
    edges
        `t_1 < … < t_m`, in the dtype of the draws.
    counts
        Shape of a draw, and `m + 1` along a last axis: draws with `x < t_1`, with `t_j ≤ x < t_{j+1}`, and with
        `x ≥ t_m`.
    """

    edges: np.ndarray
    counts: PyTree
    _minimum: PyTree
    _maximum: PyTree

    def quantile(self, probability: float) -> Bracket:
        """The edges around a quantile: the smallest draw `x` such that a share of at least `probability` is `≤ x`.

        The bracket is certain, not an estimate. Its width is that of a cell; in the two outer cells the smallest
        or the largest draw takes the place of the missing edge.

        Raises
        ------
        ValueError
            For a probability outside [0, 1].
        """
        if not 0 <= probability <= 1:
            raise ValueError(f"A probability lies in [0, 1]; got {probability}.")
        ends = np.concatenate([[-np.inf], self.edges.astype(np.float64), [np.inf]])

        def cell(counts):
            below = np.cumsum(counts, axis=-1)
            exact = probability * below[..., -1:]
            return (below < np.maximum(np.ceil(exact - 1e-12 * exact), 1)).sum(axis=-1)

        def low(counts, minimum):
            return np.maximum(ends[cell(counts)], minimum)

        def high(counts, maximum):
            return np.minimum(ends[cell(counts) + 1], maximum)

        return Bracket(jax.tree.map(low, self.counts, self._minimum), jax.tree.map(high, self.counts, self._maximum))


def logarithmic_edges(smallest: float, largest: float, *, accuracy: float) -> Float[np.ndarray, " edges"]:
    """Edges for quantiles of a known relative accuracy, on both sides of zero.

    Between ``smallest`` and ``largest`` neighbours have the ratio `(1 + a) / (1 − a)` at most, with `a` the accuracy:
    the harmonic mean `2 l h / (l + h)` of a bracket `[l, h]` is within `a` of everything in it, relatively. One cell
    around zero holds what is below ``smallest`` in modulus.

    Raises
    ------
    ValueError
        Where not `0 < smallest < largest`, or not `0 < accuracy < 1`.

    >>> logarithmic_edges(1.0, 9.0, accuracy=0.5).round(3).tolist()
    [-9.0, -3.0, -1.0, 1.0, 3.0, 9.0]
    """
    if not 0 < smallest < largest < math.inf or not 0 < accuracy < 1:
        raise ValueError(
            f"Edges need 0 < smallest < largest and an accuracy between 0 and 1; got {smallest}, {largest}, {accuracy}."
        )
    cells = math.ceil(math.log(largest / smallest) / math.log((1 + accuracy) / (1 - accuracy)) - 1e-9)
    positive = np.geomspace(smallest, largest, cells + 1)
    return np.concatenate([-positive[::-1], positive])


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Statistics of independent draws, in float64 NumPy arrays of the shapes that one draw has.

    Attributes
    ----------
    count
        Draws that were made; fewer than asked for where the standard error was reached.
    finite
        How many of them are finite: every statistic is over these.
    failed_draws
        Numbers of the first draws that are not finite, at most sixteen.
    device_bytes
        What the run needed on each device at most, as far as XLA tells: for the draws being computed, and for what
        the blocks of a call leave.
    """

    count: int
    finite: int
    failed_draws: tuple[int, ...]
    device_bytes: int
    _edges: np.ndarray
    _plan: Plan
    _state: State

    @property
    def failed(self) -> int:
        """Draws with a NaN or an infinity in some entry; they are left out as a whole."""
        return self.count - self.finite

    @property
    def mean(self) -> PyTree:
        """`m = Σ x / n` over the finite draws."""
        return self._shaped(self._total.mean[0])

    @property
    def variance(self) -> PyTree:
        """`Σ (x − m)² / (n − 1)`; infinite for a single draw, of which nothing is known."""
        return self._shaped(self._variance)

    @property
    def standard_error(self) -> PyTree:
        """Of the mean: the root of the variance over `n`."""
        return self._shaped(np.sqrt(self._variance / self.finite))

    @property
    def minimum(self) -> PyTree:
        """The smallest value of each entry."""
        return self._shaped(self._range.minimum.astype(np.float64))

    @property
    def maximum(self) -> PyTree:
        """The largest value of each entry."""
        return self._shaped(self._range.maximum.astype(np.float64))

    @property
    def covariance(self) -> Float[np.ndarray, "entries entries"]:
        """`Σ (x − m)(x − m)ᵀ / (n − 1)` between all entries of a draw, its arrays flattened one after the other.

        Raises
        ------
        ValueError
            Where it was not asked for.
        """
        product = self._total.product
        if product is None:
            raise ValueError("Covariances were not gathered. Run monte_carlo with covariance=True.")
        return product[0] / (self.finite - 1) if self.finite > 1 else np.full_like(product[0], np.inf)

    @property
    def histogram(self) -> Histogram:
        """Counts between the edges.

        Raises
        ------
        ValueError
            Where no edges were given.
        """
        counts = self._range.counts
        if counts is None:
            raise ValueError("There is no histogram without edges. Run monte_carlo with edges=...")
        shaped = jax.tree.map(lambda leaf: np.moveaxis(leaf, 0, -1), self._shaped(counts.T))
        return Histogram(self._edges, shaped, self.minimum, self.maximum)

    @property
    def values(self) -> PyTree:
        """All draws, stacked along a new leading axis in the dtypes of a draw, those that failed included.

        Raises
        ------
        ValueError
            Where they were not kept.
        """
        if not self._plan.keep:
            raise ValueError("The draws were not kept. Run monte_carlo with keep=True.")
        return self._plan.outline.restored(np.concatenate(self._state.values), cast=True)

    @cached_property
    def _total(self) -> Moments:
        return self._state.tree.total()

    @property
    def _range(self) -> Range:
        assert self._state.range is not None
        return self._state.range

    @property
    def _variance(self) -> np.ndarray:
        square = self._total.square[0]
        return square / (self.finite - 1) if self.finite > 1 else np.full_like(square, np.inf)

    def _shaped(self, values: np.ndarray) -> PyTree:
        return self._plan.outline.restored(values)

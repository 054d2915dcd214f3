"""The squared cosine of two matrices, and its law where their directions are independent and isotropic."""

from typing import TypeAlias

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import ArrayLike

LAGUERRE_NODES = 60
UNDERFLOW = 1e-290

NumberLike: TypeAlias = ArrayLike | np.generic | float | int
HostValues: TypeAlias = np.ndarray | np.float64


def alignment(first: Float[ArrayLike, "*shape"], second: Float[ArrayLike, "*shape"]) -> Float[Array, ""]:
    """Squared Frobenius cosine `Q = ⟨A, B⟩² / (‖A‖² ‖B‖²)`.

    Each side is first divided by its largest entry, so the result does not depend on the scale of either over the
    whole range of the dtype. The cosine with a zero matrix is not defined: the result is then NaN.

    Raises
    ------
    ValueError
        Where the shapes differ.

    >>> float(alignment(jnp.array([[3.0, 0.0], [0.0, 4.0]]), jnp.array([[3.0, 4.0], [0.0, 0.0]])).round(4))
    0.1296
    """
    if first.shape != second.shape:
        raise ValueError(
            f"alignment compares matrices of one shape; got {first.shape} and {second.shape}. The feedback matrix of "
            "layer l stands against the transpose of the forward weights of layer l + 1."
        )
    first, second = (side.ravel() / jnp.max(jnp.abs(side), initial=0.0) for side in (first, second))
    return jnp.sum(first * second) ** 2 / (jnp.sum(first**2) * jnp.sum(second**2))


class SquaredCosineLaw(eqx.Module):
    """Law of the squared cosine of independent isotropic directions, `Q ~ Beta(1/2, (D − 1)/2)`.

    Two matrices of `D` entries whose directions are independent and uniform have this [`alignment`][]; by rotational
    invariance one direction may be held fixed. `D Q` tends to a chi-squared law with one degree of freedom.

    Everything is computed in float64 on the host, with SciPy; arguments broadcast against the dimension.

    Parameters
    ----------
    dimension
        `D ≥ 2`, the number of entries of each matrix: `n_l n_{l+1}` for feedback alignment.

    Raises
    ------
    ValueError
        For a dimension below 2 or not finite.

    >>> law = SquaredCosineLaw(64)
    >>> round(float(law.quantile(0.99)), 5), float(law.mean)
    (0.10071, 0.015625)
    """

    dimension: np.ndarray = eqx.field(converter=lambda dimension: np.asarray(dimension, dtype=np.float64))

    def __check_init__(self):
        if not (np.isfinite(self.dimension).all() and (self.dimension >= 2).all()):
            raise ValueError(f"A direction needs a finite dimension of at least 2; got {self.dimension}.")

    @property
    def mean(self) -> HostValues:
        """`1 / D`."""
        return 1 / self.dimension

    @property
    def variance(self) -> HostValues:
        """`2 (D − 1) / (D² (D + 2))`."""
        return 2 * (self.dimension - 1) / (self.dimension**2 * (self.dimension + 2))

    def cdf(self, squared_cosine: NumberLike) -> HostValues:
        """`Pr(Q ≤ q) = I_q(1/2, (D − 1)/2)`, the regularised incomplete beta function.

        Raises
        ------
        ValueError
            For values outside [0, 1].
        """
        from scipy.special import betainc

        return betainc(0.5, self._half, _probabilities(squared_cosine, "squared cosine"))

    def quantile(self, probability: NumberLike) -> HostValues:
        """The `q` with `Pr(Q ≤ q) = probability`.

        Raises
        ------
        ValueError
            For probabilities outside [0, 1].
        """
        from scipy.special import betaincinv

        return betaincinv(0.5, self._half, _probabilities(probability, "probability"))

    def log_survival(self, squared_cosine: NumberLike) -> HostValues:
        """`log Pr(Q > q)`, the negative of the cost of an alignment `q` in nats.

        Below the median the logarithm of one minus the distribution function, above it the logarithm of the
        complementary incomplete beta function. Where that underflows, with `a = (D − 1)/2`,

        `log Pr(Q > q) = a log(1 − q) − log B(1/2, a) − log a + log Σ_j w_j / √(1 − (1 − q) exp(−x_j / a))`

        over the 60 nodes `x_j` and weights `w_j` of Gauss–Laguerre quadrature. The result is 0 at `q = 0` and −∞
        at `q = 1`.

        Raises
        ------
        ValueError
            For values outside [0, 1].

        >>> float(SquaredCosineLaw(10**6).log_survival(0.5).round(3))
        -346580.031
        """
        from scipy.special import betainc, betaln

        value, half = np.broadcast_arrays(_probabilities(squared_cosine, "squared cosine"), self._half)
        nodes, weights = np.polynomial.laguerre.laggauss(LAGUERRE_NODES)
        with np.errstate(divide="ignore"):
            survival = betainc(half, 0.5, 1 - value)
            near = np.log1p(-betainc(0.5, half, value))
            logarithm = np.log1p(-value)
            root = np.sqrt(-np.expm1(logarithm[..., None] - nodes / half[..., None]))
            far = half * logarithm - betaln(0.5, half) - np.log(half) + np.log((weights / root).sum(axis=-1))
            return np.select([survival > 0.5, survival > UNDERFLOW], [near + 0.0, np.log(survival)], far)

    @property
    def _half(self) -> HostValues:
        return (self.dimension - 1) / 2


def _probabilities(values: NumberLike, name: str) -> HostValues:
    values = np.asarray(values, dtype=np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"A {name} lies in [0, 1]; got values from {values.min()} to {values.max()}.")
    return values

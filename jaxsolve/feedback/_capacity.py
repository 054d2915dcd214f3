"""What an alignment costs: tails of the squared cosine on one layer and on several, and their surprisal."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Num

from .._types import ArrayLike, Key
from ._alignment import HostValues, NumberLike, SquaredCosineLaw

LEGENDRE_NODES = 40
NEGLIGIBLE = 40.0
"""Logarithm of the share of the integrand at which the quadrature stops."""


def draw_squared_cosines(dimensions: Float[Array, " panel"], count: int, *, key: Key) -> Float[Array, "{count} panel"]:
    """Squared cosines of independent isotropic directions, ``count`` draws for each dimension, without vectors.

    A plane through one direction is drawn: the other projects onto it with squared length `1 − U^{2/(D−2)}` and at a
    uniform angle, `U` uniform on (0, 1). Two numbers per draw, in any dimension `D ≥ 2`.

    Raises
    ------
    ValueError
        For fewer than one draw, and for a known dimension below 2 or not finite.

    >>> draw_squared_cosines(jnp.array([64.0, 1e6]), 3, key=jax.random.key(0)).shape
    (3, 2)
    """
    if count < 1:
        raise ValueError(f"draw_squared_cosines makes at least one draw; got count={count}.")
    dimensions = _checked_dimensions(dimensions)
    # A flat draw: with several axes the compiler evaluates the generator's counters one by one, for seconds.
    flat = jax.random.uniform(key, (2 * count * dimensions.size,), dimensions.dtype)
    uniform = flat.reshape(2, count, dimensions.size)
    squared_length = -jnp.expm1(2 * jnp.log(uniform[0]) / (dimensions[None, :] - 2))
    return squared_length * jnp.cos(2 * jnp.pi * uniform[1]) ** 2


def log_cap_fraction(
    squared_cosine: Float[Array, "*shape"], dimension: Float[Array, "*shape"]
) -> Float[Array, "*shape"]:
    """Logarithm of the share of the unit sphere in `D` dimensions within `cos² ≥ q` of an axis.

    `log ∫_0^ϑ sin^{D−2} t dt − log ∫_0^{π/2} sin^{D−2} t dt` with `cos² ϑ = q`, by Gauss–Legendre quadrature over the
    part where the integrand is not negligible. It is what [`SquaredCosineLaw.log_survival`][] says by incomplete beta
    functions, by another route that also runs under transformations. For whole `D` up to 10^6 the two differ by about
    1e-12 of the larger of 1 and the logarithm, in double precision.

    Raises
    ------
    ValueError
        For shapes or dtypes that differ; for known values outside [0, 1] and dimensions below 2 or not finite. Under
        a transformation the last are errors at run time.

    >>> [round(float(value), 4) for value in log_cap_fraction(jnp.array([0.25, 1.0]), jnp.array([3.0, 3.0]))]
    [-0.6931, -inf]
    """
    if squared_cosine.shape != dimension.shape or squared_cosine.dtype != dimension.dtype:
        raise ValueError(
            f"log_cap_fraction takes one dimension per squared cosine, of one dtype; got {squared_cosine.shape} and "
            f"{dimension.shape}, {squared_cosine.dtype} and {dimension.dtype}. Use jnp.broadcast_arrays."
        )
    inside = (squared_cosine >= 0) & (squared_cosine <= 1)
    value = _refuse(squared_cosine, ~inside.all(), "A squared cosine lies in [0, 1]; some value does not.")
    exponent = _checked_dimensions(dimension) - 2
    below_one = jnp.where(value < 1, value, 0)
    cap = exponent / 2 * jnp.log1p(-below_one) + _log_integral(below_one, exponent)
    return jnp.where(value < 1, cap - _log_integral(jnp.zeros_like(value), exponent), -jnp.inf)


def _log_integral(value: Array, exponent: Array) -> Array:
    """`log ∫_0^ϑ (sin(ϑ − s) / sin ϑ)^m ds`, cut off where the integrand is below exp(−40)."""
    nodes, weights = np.polynomial.legendre.leggauss(LEGENDRE_NODES)
    cotangent = jnp.sqrt(value / (1 - value))
    reach = 2 * NEGLIGIBLE / jnp.maximum(exponent, 1e-9)
    width = jnp.minimum(
        jnp.arctan2(jnp.sqrt(1 - value), jnp.sqrt(value)), reach / (cotangent + jnp.sqrt(cotangent**2 + reach))
    )

    def add(total, rule):
        node, weight = rule
        step = node * width
        loss = 2 * jnp.sin(step / 2) ** 2 + cotangent * jnp.sin(step)
        return total + weight * jnp.exp(exponent * jnp.log1p(-loss)), None

    rule = tuple(jnp.asarray(array, value.dtype) for array in ((nodes + 1) / 2, weights / 2))
    total, _ = jax.lax.scan(add, jnp.zeros_like(value), rule)
    return jnp.log(width * total)


def alignment_cost(squared_cosines: Float[ArrayLike, " layers"], dimensions: Num[ArrayLike, " layers"]) -> float:
    """Cost in nats of alignments on several layers at once, `C = Σ_l C_l(q_l)` with `C_l(q) = −log Pr(Q_l ≥ q)`.

    Feedback matrices of separate layers are independent: their chances multiply. Exact to rounding up to dimensions
    of 10^6, where the chance itself is not a floating number any more.

    Parameters
    ----------
    squared_cosines
        The alignment `q_l` asked of each layer.
    dimensions
        `D_l = n_l n_{l+1}` of each.

    Raises
    ------
    ValueError
        For no layers, shapes that differ, values outside [0, 1], and dimensions below 2.

    >>> round(alignment_cost(np.array([0.5, 0.01]), np.array([1e6, 4096.0])), 2)
    346602.71
    """
    values, sizes = np.asarray(squared_cosines), np.asarray(dimensions)
    if values.ndim != 1 or values.shape != sizes.shape or not values.size:
        raise ValueError(
            f"alignment_cost takes one squared cosine and one dimension per layer, for at least one layer; got shapes "
            f"{values.shape} and {sizes.shape}."
        )
    return float(-SquaredCosineLaw(sizes).log_survival(values).sum())


def chance_threshold_cost(threshold: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """What the cost of the alignment `c / D` tends to in high dimensions, `−log Pr(χ²_1 ≥ c)`, in nats.

    1.148 at `c = 1` and 1.850 at `c = 2`. It exceeds `c / 2` by about `½ log(π c / 2)` where `c` is large, so that
    `c / 2` is the leading order in `c` and not the value at a given one.

    Raises
    ------
    ValueError
        For a known threshold that is negative or not finite; under a transformation an error at run time.

    >>> [round(float(cost), 3) for cost in chance_threshold_cost(jnp.array([1.0, 2.0]))]
    [1.148, 1.85]
    """
    allowed = (threshold >= 0) & jnp.isfinite(threshold)
    threshold = _refuse(threshold, ~allowed.all(), "A threshold is finite and not negative; some value is.")
    return -(math.log(2) + jax.scipy.special.log_ndtr(-jnp.sqrt(threshold)))


class SurprisalLaw(eqx.Module):
    """Law of the summed surprisal `Σ_l −log Pr(Q'_l ≥ Q_l)` of `L` independent layers: Gamma with shape `L`, scale 1.

    One layer's surprisal is exponential with mean 1. No dimension appears. Computed in float64 on the host.

    Parameters
    ----------
    layers
        `L ≥ 1`.

    Raises
    ------
    ValueError
        For a number of layers that is not whole, or below 1.

    >>> law = SurprisalLaw(16)
    >>> float(law.mean), float(law.cdf(16.0).round(3))
    (16.0, 0.533)
    """

    layers: np.ndarray = eqx.field(converter=lambda layers: np.asarray(layers, dtype=np.float64))

    def __check_init__(self):
        whole = np.isfinite(self.layers).all() and (self.layers == np.round(self.layers)).all()
        if not (whole and (self.layers >= 1).all()):
            raise ValueError(f"The number of layers is whole and at least 1; got {self.layers}.")

    @property
    def mean(self) -> HostValues:
        """`L`."""
        return self.layers

    @property
    def variance(self) -> HostValues:
        """`L`."""
        return self.layers

    def cdf(self, surprisal: NumberLike) -> HostValues:
        """The regularised lower incomplete gamma function `P(L, s)`, zero for negative `s`.

        Raises
        ------
        ValueError
            For values that are NaN.
        """
        from scipy.special import gammainc

        surprisal = np.asarray(surprisal, dtype=np.float64)
        if np.isnan(surprisal).any():
            raise ValueError("A surprisal is a number; got NaN.")
        return gammainc(self.layers, np.maximum(surprisal, 0))


def _checked_dimensions(dimensions: Array) -> Array:
    allowed = (dimensions >= 2) & jnp.isfinite(dimensions)
    return _refuse(dimensions, ~allowed.all(), "A direction needs a finite dimension of at least 2; some value is not.")


def _refuse(value, failed, message):
    if isinstance(failed, Tracer):
        return eqx.error_if(value, failed, message)
    if failed:
        raise ValueError(message)
    return value

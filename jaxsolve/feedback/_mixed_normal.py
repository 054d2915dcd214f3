"""The law of a normal variable whose variance is a quadratic form of other normal variables."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import ArrayLike, Key, Scalar

RANGE = 40.0
"""Standard deviations on either side within which the distribution function is computed."""

NODES = 4096
CHUNK = 1024


class MixedNormal(eqx.Module):
    """The exact law of the erosion with two hidden layers and Gaussian feedback.

    Given `B_2` the erosion is normal, and its variance a quadratic form of `B_2` with one `n_L × n_L` block
    `σ_1² T_b^T T_b` for each unit `b` of the second hidden layer. In the eigenvectors of the blocks, with independent
    standard normal `z_k` and `y`,

        e_0 = mean − Σ_k c_k z_k − y (Σ_k λ_k z_k²)^{1/2},

    a law that is symmetric about the hidden share, with the characteristic function of `e_0 − mean`

        φ(t) = Π_k (1 + t² λ_k)^{−1/2} exp(−t² c_k² / (2 (1 + t² λ_k))).

    It is normal only where all `λ_k` vanish. Made by [`two_layer_erosion`][].

    Attributes
    ----------
    mean
        The hidden share.
    linear, quadratic
        `c_k` and `λ_k`, for `k = 1, …, n_2 n_L`.
    """

    mean: Scalar
    linear: Float[Array, " modes"]
    quadratic: Float[Array, " modes"]

    @property
    def variance(self) -> Scalar:
        """`Σ_k (c_k² + λ_k)`."""
        return jnp.sum(self.linear**2) + jnp.sum(self.quadratic)

    @property
    def excess_kurtosis(self) -> Scalar:
        """`(12 Σ_k λ_k c_k² + 6 Σ_k λ_k²) / variance²`, never negative: 0 for a normal law."""
        fourth = 12 * jnp.sum(self.quadratic * self.linear**2) + 6 * jnp.sum(self.quadratic**2)
        return fourth / self.variance**2

    def cdf(self, value: Float[ArrayLike, "*shape"]) -> Float[np.ndarray, "*shape"]:
        """The distribution function, by inversion of the characteristic function; in float64, on the host.

        `F(x) = 1/2 + 1/π ∫_0^∞ sin(t (x − mean)) φ(t) / t dt`, by the midpoint rule with 40/π nodes per unit of `t`,
        in units of the standard deviation. The rule repeats the law every 80 standard deviations, which leaves the
        mass beyond 40 as its error. The sum ends where `φ` falls below 1e-16, or after 4096 nodes at `t = 322`: what is
        then left is at most `φ(322)`. That matters only where a single mode carries the variance, with an error of
        1e-5. Where the variance is zero, the law is a jump at the mean.

        Raises
        ------
        ValueError
            Where the law is not finite.
        """
        mean, linear, quadratic = (np.asarray(part, np.float64) for part in (self.mean, self.linear, self.quadratic))
        variance = (linear**2).sum() + quadratic.sum()
        if not (np.isfinite(mean) and np.isfinite(variance)):
            raise ValueError(f"A law has a finite mean and variance; got {mean} and {variance}.")
        value = np.asarray(value, np.float64)
        if variance == 0:
            return (value >= mean).astype(np.float64)
        nodes = (np.arange(NODES) + 0.5) * np.pi / RANGE
        characteristic = np.exp(_log_characteristic(nodes, linear**2 / variance, quadratic / variance))
        kept = max(int(np.count_nonzero(characteristic > 1e-16)), 1)
        nodes, weights = nodes[:kept], characteristic[:kept] / (np.pi * (np.arange(kept) + 0.5))
        flat = (value.ravel() - mean) / np.sqrt(variance)
        chunks = [np.sin(flat[start : start + CHUNK, None] * nodes) @ weights for start in range(0, flat.size, CHUNK)]
        inside = np.clip(0.5 + np.concatenate([*chunks, np.zeros(0)]), 0, 1).reshape(value.shape)
        return np.where(np.abs(value - mean) < RANGE * np.sqrt(variance), inside, (value >= mean).astype(np.float64))

    def draw(self, *, key: Key) -> Scalar:
        """One draw, from `n_2 n_L + 1` normal numbers."""
        normal = jax.random.normal(key, (self.linear.size + 1,), self.linear.dtype)
        modes, last = normal[:-1], normal[-1]
        spread = jnp.sqrt(jnp.sum(self.quadratic * modes**2))
        return self.mean - jnp.sum(self.linear * modes) - last * spread


def _log_characteristic(nodes, squares, quadratic):
    """Logarithm of the characteristic function, a sum over the modes, in pieces of bounded memory."""
    pieces = []
    for piece in np.array_split(nodes, max(1, nodes.size * quadratic.size // 2**20)):
        growth = piece[:, None] ** 2 * quadratic[None, :]
        terms = np.log1p(growth) + piece[:, None] ** 2 * squares[None, :] / (1 + growth)
        pieces.append(-0.5 * terms.sum(axis=1))
    return np.concatenate(pieces)

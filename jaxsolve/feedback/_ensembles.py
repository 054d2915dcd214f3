"""Laws of random feedback matrices under one interface, and which directions they cover."""

import abc
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .._types import ArrayLike, Key

QUADRATURE_NODES = 400


class AbstractFeedbackEnsemble(eqx.Module):
    """A law of feedback matrices of one shape, scaled to Frobenius norm 1.

    With `b` the matrix flattened row by row, a vector of `D` entries, `M = E[b bᵀ]` says which directions the law
    covers: the mean squared cosine with a fixed target `a` is `aᵀ M a`. `tr M = 1`, so that the worst direction gets
    `λ_min(M) ≤ 1/D`, and exactly `1/D` where `M = I / D`.

    An ensemble is the image of a standard Gaussian vector, so that several can be drawn from the same numbers.

    Attributes
    ----------
    shape
        `(n_l, n_{l+1})`, at least two entries.
    """

    shape: eqx.AbstractVar[tuple[int, int]]

    @abc.abstractmethod
    def from_noise(self, noise: Float[Array, " noise"]) -> Float[Array, "rows columns"]:
        """The matrix of Frobenius norm 1 that ``noise_size`` standard normal numbers are sent to."""

    @abc.abstractmethod
    def second_moment(self) -> Float[np.ndarray, "dimension dimension"]:
        """`M = E[b bᵀ]`, exact, in float64 on the host."""

    @property
    def dimension(self) -> int:
        """`D`, the number of entries."""
        return math.prod(self.shape)

    @property
    def noise_size(self) -> int:
        """How many standard normal numbers make a matrix."""
        return self.dimension

    def draw(self, *, dtype: jax.typing.DTypeLike = float, key: Key) -> Float[Array, "rows columns"]:
        """One feedback matrix."""
        return self.from_noise(jax.random.normal(key, (self.noise_size,), dtype))

    def draws(
        self, count: int, *, dtype: jax.typing.DTypeLike = float, key: Key
    ) -> Float[Array, "{count} rows columns"]:
        """``count`` independent feedback matrices.

        Raises
        ------
        ValueError
            For fewer than one.
        """
        if count < 1:
            raise ValueError(f"An ensemble makes at least one draw; got count={count}.")
        # Drawn flat: with several axes the compiler evaluates the generator's counters one by one.
        noise = jax.random.normal(key, (count * self.noise_size,), dtype)
        return jax.vmap(self.from_noise)(noise.reshape(count, self.noise_size))

    def __check_init__(self):
        if len(self.shape) != 2 or min(self.shape) < 1 or self.dimension < 2:
            raise ValueError(f"A feedback matrix has a shape (rows, columns) of two entries or more; got {self.shape}.")


class _Isotropic(AbstractFeedbackEnsemble):
    """A law with `M = I / D`."""

    def second_moment(self) -> Float[np.ndarray, "dimension dimension"]:
        return np.eye(self.dimension) / self.dimension


class IsotropicFeedback(_Isotropic):
    """Independent Gaussian entries: the direction is uniform on the sphere, `M = I / D`.

    >>> matrix = IsotropicFeedback((3, 4)).draw(key=jax.random.key(0))
    >>> matrix.shape, round(float(jnp.sum(matrix**2)), 6)
    ((3, 4), 1.0)
    """

    shape: tuple[int, int] = eqx.field(static=True)

    def from_noise(self, noise: Float[Array, " noise"]) -> Float[Array, "rows columns"]:
        return _unit(noise.reshape(self.shape))


class SignFeedback(_Isotropic):
    """Independent fair signs over `√D` (Rademacher): `M = I / D`, although only `2^D` directions occur."""

    shape: tuple[int, int] = eqx.field(static=True)

    def from_noise(self, noise: Float[Array, " noise"]) -> Float[Array, "rows columns"]:
        return _sign(noise).reshape(self.shape) / math.sqrt(self.dimension)


class OrthogonalFeedback(_Isotropic):
    """Orthonormal rows or columns, whichever are fewer, uniform in the Haar measure: `M = I / D`."""

    shape: tuple[int, int] = eqx.field(static=True)

    def from_noise(self, noise: Float[Array, " noise"]) -> Float[Array, "rows columns"]:
        rows, columns = self.shape
        factor, triangle = jnp.linalg.qr(noise.reshape(max(self.shape), min(self.shape)))
        factor = factor * _sign(jnp.diagonal(triangle))[None, :]
        return (factor if rows >= columns else factor.T) / math.sqrt(min(self.shape))


class LowRankFeedback(_Isotropic):
    """A product of Gaussian factors `U Vᵀ` of rank ``rank``, drawn anew: `M = I / D`, by symmetry in rows and columns.

    Every matrix is singular, and yet no target is covered less than another: what is missing at each draw is missing
    somewhere else. A fixed subspace of matrices is another thing, [`SubspaceFeedback`][].
    """

    shape: tuple[int, int] = eqx.field(static=True)
    rank: int = eqx.field(static=True)

    def __check_init__(self):
        if not 1 <= self.rank <= min(self.shape):
            raise ValueError(f"A matrix of shape {self.shape} has rank 1 to {min(self.shape)}; got rank={self.rank}.")

    def from_noise(self, noise: Float[Array, " noise"]) -> Float[Array, "rows columns"]:
        factors = noise.reshape(sum(self.shape), self.rank)
        rows = self.shape[0]
        return _unit(jnp.matmul(factors[:rows], factors[rows:].T, precision="highest"))

    @property
    def noise_size(self) -> int:
        return sum(self.shape) * self.rank


class SparseFeedback(_Isotropic):
    """``entries`` Gaussian entries at places drawn anew, zero elsewhere: `M = I / D`."""

    shape: tuple[int, int] = eqx.field(static=True)
    entries: int = eqx.field(static=True)

    def __check_init__(self):
        if not 1 <= self.entries <= self.dimension:
            raise ValueError(f"entries lies between 1 and {self.dimension}, the size of a matrix; got {self.entries}.")

    def from_noise(self, noise: Float[Array, " noise"]) -> Float[Array, "rows columns"]:
        values, places = jnp.split(noise, 2)
        chosen = (places >= jnp.sort(places)[-self.entries]).astype(noise.dtype)
        return _unit((chosen * values).reshape(self.shape))

    @property
    def noise_size(self) -> int:
        return 2 * self.dimension


class RandomAxisFeedback(_Isotropic):
    """One entry, at a uniform place and of a fair sign: `M = I / D`, the sparsest law that is minimax."""

    shape: tuple[int, int] = eqx.field(static=True)

    def from_noise(self, noise: Float[Array, " noise"]) -> Float[Array, "rows columns"]:
        chosen = (jnp.abs(noise) == jnp.max(jnp.abs(noise))).astype(noise.dtype)
        return _unit((chosen * _sign(noise)).reshape(self.shape))


class FixedAxisFeedback(AbstractFeedbackEnsemble):
    """One entry at a place that never changes, of a fair sign: `M` has rank one and `λ_min = 0`.

    Parameters
    ----------
    shape
        Of the matrices.
    row, column
        The place.
    """

    shape: tuple[int, int] = eqx.field(static=True)
    row: int = eqx.field(static=True, default=0)
    column: int = eqx.field(static=True, default=0)

    def __check_init__(self):
        if not (0 <= self.row < self.shape[0] and 0 <= self.column < self.shape[1]):
            raise ValueError(f"The place ({self.row}, {self.column}) lies outside a matrix of shape {self.shape}.")

    def from_noise(self, noise: Float[Array, " noise"]) -> Float[Array, "rows columns"]:
        return jnp.zeros(self.shape, noise.dtype).at[self.row, self.column].set(_sign(noise)[0])

    @property
    def noise_size(self) -> int:
        return 1

    def second_moment(self) -> Float[np.ndarray, "dimension dimension"]:
        moment = np.zeros((self.dimension, self.dimension))
        index = self.row * self.shape[1] + self.column
        moment[index, index] = 1
        return moment


class SubspaceFeedback(AbstractFeedbackEnsemble):
    """Uniform directions within the span of the first ``rank`` entries of `b`: `λ_min(M) = 0` unless that is all.

    It is the best law for a target known to lie in that span, where it reaches `1 / rank`.
    """

    shape: tuple[int, int] = eqx.field(static=True)
    rank: int = eqx.field(static=True)

    def __check_init__(self):
        if not 1 <= self.rank <= self.dimension:
            raise ValueError(f"rank lies between 1 and {self.dimension}, the size of a matrix; got {self.rank}.")

    def from_noise(self, noise: Float[Array, " noise"]) -> Float[Array, "rows columns"]:
        entries = jnp.concatenate([noise, jnp.zeros(self.dimension - self.rank, noise.dtype)])
        return _unit(entries.reshape(self.shape))

    @property
    def noise_size(self) -> int:
        return self.rank

    def second_moment(self) -> Float[np.ndarray, "dimension dimension"]:
        return np.diag(np.where(np.arange(self.dimension) < self.rank, 1 / self.rank, 0.0))


class AnisotropicFeedback(AbstractFeedbackEnsemble):
    """Gaussian entries of different variances `s_i`, scaled to norm 1.

    `M` is diagonal, by symmetry of the signs, with `M_ii = ∫_0^∞ s_i (1 + 2 s_i t)^{−3/2} Π_{j≠i} (1 + 2 s_j t)^{−1/2}
    dt`. The integral is taken on a logarithmic scale by 400 Gauss–Legendre nodes, to about 1e-12.

    Parameters
    ----------
    shape
        Of the matrices.
    variances
        `s`, one per entry, positive; their scale does not matter.
    """

    shape: tuple[int, int] = eqx.field(static=True)
    variances: Float[ArrayLike, " dimension"]

    def __check_init__(self):
        if self.variances.shape != (self.dimension,):
            raise ValueError(
                f"A matrix of shape {self.shape} has {self.dimension} variances; got {self.variances.shape}."
            )
        if not isinstance(self.variances, Tracer):
            values = np.asarray(self.variances)
            if not (np.isfinite(values).all() and (values > 0).all()):
                raise ValueError("Variances are finite and positive. Use SubspaceFeedback where some are zero.")

    def from_noise(self, noise: Float[Array, " noise"]) -> Float[Array, "rows columns"]:
        return _unit((jnp.sqrt(jnp.asarray(self.variances, noise.dtype)) * noise).reshape(self.shape))

    def second_moment(self) -> Float[np.ndarray, "dimension dimension"]:
        variances = np.asarray(self.variances, float) / np.asarray(self.variances, float).sum()
        nodes, weights = np.polynomial.legendre.leggauss(QUADRATURE_NODES)
        low, high = -40.0, 40 + math.log(1 / variances.min())
        time = np.exp(low + (high - low) * (nodes + 1) / 2)
        growth = np.log1p(2 * variances[:, None] * time[None])
        integrand = np.exp(np.log(time)[None] - growth - growth.sum(axis=0)[None] / 2)
        return np.diag(variances * (integrand @ weights) * (high - low) / 2)


def coverage(ensemble: AbstractFeedbackEnsemble, target: Float[ArrayLike, "rows columns"]) -> float:
    """Mean squared cosine of the ensemble with a target, `aᵀ M a / ‖a‖²`.

    Raises
    ------
    ValueError
        For a target of another shape than the matrices, one that is zero and one that is not finite.

    >>> coverage(SubspaceFeedback((2, 2), rank=2), np.array([[1.0, 1.0], [1.0, 1.0]]))
    0.25
    """
    direction = np.asarray(target, float)
    if direction.shape != ensemble.shape:
        raise ValueError(f"A target has the shape {ensemble.shape} of the feedback; got {direction.shape}.")
    if not np.isfinite(direction).all() or not direction.any():
        raise ValueError("A target is finite and not zero: only its direction counts.")
    direction = direction.ravel() / np.linalg.norm(direction / np.abs(direction).max()) / np.abs(direction).max()
    return float(direction @ ensemble.second_moment() @ direction)


def worst_coverage(ensemble: AbstractFeedbackEnsemble) -> float:
    """Mean squared cosine with the worst target, `λ_min(M)`: at most `1/D`, the value of isotropic feedback.

    >>> worst_coverage(SignFeedback((4, 8))), worst_coverage(FixedAxisFeedback((4, 8)))
    (0.03125, 0.0)
    """
    return float(np.linalg.eigvalsh(ensemble.second_moment())[0])


def prior_coverage(ensemble: AbstractFeedbackEnsemble, prior_moment: Float[ArrayLike, "dimension dimension"]) -> float:
    """Mean squared cosine for targets from a prior, `tr(Σ_A M)` with `Σ_A = E[a aᵀ]` of unit targets.

    The best law for a given prior covers the eigenvectors of the largest eigenvalue of `Σ_A` alone and reaches that
    eigenvalue; for `Σ_A = I / D` every law gets `1/D`.

    Raises
    ------
    ValueError
        For a moment of another size, not symmetric, of trace other than 1 or not finite.

    >>> prior_coverage(SubspaceFeedback((1, 4), rank=1), np.diag([0.7, 0.1, 0.1, 0.1]))
    0.7
    """
    moment = np.asarray(prior_moment, float)
    size = ensemble.dimension
    if moment.shape != (size, size):
        raise ValueError(f"The second moment of targets has shape ({size}, {size}); got {moment.shape}.")
    if not np.isfinite(moment).all() or np.abs(moment - moment.T).max() > 1e-10 or abs(np.trace(moment) - 1) > 1e-6:
        raise ValueError("The second moment of unit targets is finite, symmetric and of trace 1.")
    return float(np.sum(moment * ensemble.second_moment()))


def sampled_second_moment(
    ensemble: AbstractFeedbackEnsemble, count: int, *, dtype: jax.typing.DTypeLike = float, key: Key
) -> Float[Array, "dimension dimension"]:
    """`1/n Σ b bᵀ` over ``count`` draws, of trace 1. Its smallest eigenvalue lies below that of `M`: see
    [`finite_sample_coverage`][].

    Raises
    ------
    ValueError
        For fewer than one draw.
    """
    directions = ensemble.draws(count, dtype=dtype, key=key).reshape(count, ensemble.dimension)
    return jnp.matmul(directions.T, directions, precision="highest") / count


def finite_sample_coverage(dimension: int, draws: int) -> float:
    """The smallest eigenvalue of `1/n Σ b bᵀ` over `n` isotropic draws in `D` dimensions, `(1 − √(D/n))² / D`.

    It is the lower edge of the Marchenko–Pastur law: an estimate of the minimax value `1/D` from draws is too small by
    a share of about `2 √(D/n)`, at `n = 1000` and `D = 32` by a third. With fewer draws than dimensions it is zero.

    Raises
    ------
    ValueError
        For a dimension below 2 and for fewer than one draw.

    >>> round(finite_sample_coverage(32, 20_000), 5), round(finite_sample_coverage(32, 10**12), 5)
    (0.0288, 0.03125)
    """
    if dimension < 2 or draws < 1:
        raise ValueError(f"The edge needs a dimension of at least 2 and a draw; got {dimension} and {draws}.")
    return max(1 - math.sqrt(dimension / draws), 0.0) ** 2 / dimension


def _sign(values: Array) -> Array:
    """−1 or 1, never 0."""
    return jnp.where(values < 0, -1, 1).astype(values.dtype)


def _unit(matrix: Array) -> Array:
    return matrix / jnp.sqrt(jnp.sum(matrix**2))

"""Wishart tasks in high dimension: deterministic equivalents of the population loss at any depth."""

import math
from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float

from .._results import RESULTS, first_failure, raise_failures
from .._types import Scalar
from ._commuting import checked_weights
from ._stability import pair_moments

DAMPED = 100
NEWTON = 4


def marchenko_pastur(
    ratio: float, *, nodes: int = 64, dtype: jax.typing.DTypeLike = float
) -> tuple[Float[Array, " nodes"], Float[Array, " nodes"]]:
    """Nodes and weights for the spectral law of isotropic Wishart matrices, `K/n → c < 1`, with mean 1.

    The density is `√((λ_+ − h)(h − λ_−)) / (2π c h)` between `λ_± = (1 ± √c)²`. The quadrature is of Gauss–Chebyshev
    type: exact to rounding for polynomials in `h` without constant term up to degree `2 · nodes`, and for others at a
    geometric rate.

    Parameters
    ----------
    ratio
        `c`, between 0 and 1; a Python number.
    nodes
        Their number.
    dtype
        Of the result.

    Raises
    ------
    ValueError
        For a ratio outside its range.

    >>> eigenvalues, weights = marchenko_pastur(0.25)
    >>> round(float(weights @ eigenvalues), 6), round(float(weights @ eigenvalues**2), 6)
    (1.0, 1.25)
    """
    if not 0 < ratio < 1:
        raise ValueError(f"The ratio of size and degrees of freedom lies between 0 and 1; got {ratio}.")
    angles = np.pi * np.arange(1, nodes + 1) / (nodes + 1)
    eigenvalues = 1 + ratio + 2 * np.sqrt(ratio) * np.cos(angles)
    weights = 2 * np.sin(angles) ** 2 / ((nodes + 1) * eigenvalues)
    return jnp.asarray(eigenvalues, dtype), jnp.asarray(weights, dtype)


def wishart_resolvent(
    points: Complex[Array, " points"], spectrum: Float[Array, " size"], *, freedom: Scalar
) -> tuple[Complex[Array, " points"], Complex[Array, "points size"]]:
    """Deterministic equivalent of `(W − z)⁻¹` for Wishart matrices `W` of covariance `T = diag(t)`.

    With `n` degrees of freedom, `m` solves `1/m = −z + (1/n) Σ_k t_k / (1 + t_k m)`, and the equivalent is diagonal
    with
    entries `−1/(z (1 + t_k m))`. Solved by damped iteration and Newton's method; derivatives are those of the equation,
    not of the iteration.

    Parameters
    ----------
    points
        `z`, away from the spectrum: with an imaginary part that is not small.
    spectrum
        `t`, positive.
    freedom
        `n`.

    Returns
    -------
    companion
        `m(z)`, the trace of the companion resolvent.
    resolvent
        The diagonal for each point.

    >>> companion, resolvent = wishart_resolvent(jnp.array([100.0j]), jnp.ones(2), freedom=jnp.array(4.0))
    >>> bool(jnp.abs(resolvent + 1 / 100.0j).max() < 1e-3)
    True
    """
    t, share = _complex(spectrum)[None, :], _complex(1 / freedom)

    def equation(companion, t):
        shifted = 1 + t * companion[:, None]
        value = 1 / companion + points - jnp.sum(t / shifted, axis=1) * share
        slope = -(companion**-2) + jnp.sum((t / shifted) ** 2, axis=1) * share
        return value, slope

    fixed = jax.lax.stop_gradient(t)

    def damped(companion, _):
        following = 1 / (-points + jnp.sum(fixed / (1 + fixed * companion[:, None]), axis=1) * share)
        return (companion + following) / 2, None

    def newton(companion, _):
        value, slope = equation(companion, fixed)
        return companion - value / slope, None

    companion = jax.lax.scan(damped, -1 / points, length=DAMPED)[0]
    companion = jax.lax.stop_gradient(jax.lax.scan(newton, companion, length=NEWTON)[0])
    value, slope = equation(companion, t)
    companion = companion - value / jax.lax.stop_gradient(slope)
    return companion, -1 / (points[:, None] * (1 + t * companion[:, None]))


def wishart_loss(
    gains: Float[Array, " size"],
    spectrum: Float[Array, " size"],
    second_moments: Float[Array, " size"],
    *,
    depth: int,
    freedom: Scalar,
    norm: Literal["euclidean", "energy"] = "euclidean",
    nodes: int = 64,
) -> Scalar:
    """The population loss for Wishart tasks in the proportional limit, at any depth.

    `H` is the mean of `x xᵀ` over `n` vectors `x ~ N(0, diag(σ))`; `P = diag(p)` and `S = diag(s)`. The tasks do not
    commute. With `T = diag(p σ)`, the equivalent `Q` and `m` of [`wishart_resolvent`][], and contours around the
    spectrum,

        energy:     1/(2K) Σ_k (s_k/p_k) (−1/2πi) ∮ z (1 − z)^{2L} Q_k(z) dz,
        Euclidean:  1/(2K) (1/2πi)² ∮∮ (1 − z)^L (1 − w)^L Σ_k p_k [b_k + ζ t_k] Q_k(z) Q_k(w) dz dw,

    where `b = s/p`, `κ = z w m(z) m(w)` and `ζ = (κ/n) Σ t b Q Q / (1 − (κ/n) Σ t² Q Q)`. They are the limits of
    `E[e_Lᵀ H e_L]/(2K)` and of [`jaxsolve.solver.population_loss`][] for `K, n → ∞` at fixed `K/n`; the error at finite
    size is of order `1/K`. Rounding errors are those of terms as large as `|1 − z|^{2L}` on the contour, so that a loss
    far below them loses digits at large depth. `jax.grad` gives the closed training dynamics of the gains: by symmetry
    the gradient with
    respect to the other entries of `P` is zero.

    Parameters
    ----------
    gains, spectrum, second_moments
        `p` and `σ`, positive, and `s`.
    depth
        `L`, static.
    freedom
        `n`.
    norm
        Of the error, static.
    nodes
        Of the trapezoidal rule on each contour, static and even.

    Raises
    ------
    ValueError
        For shapes that do not fit, another norm, and gains, variances or degrees of freedom that are not positive.

    >>> one = jnp.ones(1)
    >>> round(float(wishart_loss(0.5 * one, one, one, depth=1, freedom=jnp.array(1e8), norm="euclidean")), 6)
    0.125
    """
    checked_weights(gains, spectrum[None], second_moments, None, depth)
    if norm not in ("euclidean", "energy") or nodes < 4 or nodes % 2:
        raise ValueError(
            f"norm is 'euclidean' or 'energy' and nodes an even number of at least 4; got {norm!r} and {nodes}."
        )
    failed = ~((gains > 0) & (spectrum > 0) & (freedom > 0))
    gains = raise_failures(gains, first_failure((failed, RESULTS.not_positive)), of="modes")
    loss = _euclidean if norm == "euclidean" else _energy
    return loss(gains, spectrum, second_moments, depth, freedom, nodes)


def _contour(transformed, freedom, nodes):
    """Upper half of a circle around the spectrum, and `dz / 2πi` on it."""
    edge = jax.lax.stop_gradient(transformed.max() * (1 + jnp.sqrt(transformed.size / freedom)) ** 2)
    angles = jnp.asarray(np.pi * (2 * np.arange(nodes // 2) + 1) / nodes, transformed.dtype)
    radius = jax.lax.complex(0.8 * edge * jnp.cos(angles), 0.8 * edge * jnp.sin(angles))
    return _complex(edge / 2) + radius, radius / nodes


def _complex(array):
    return jax.lax.complex(array, jnp.zeros_like(array))


@partial(jax.jit, static_argnums=(3, 5))
def _energy(gains, spectrum, second_moments, depth, freedom, nodes):
    transformed = gains * spectrum
    points, steps = _contour(transformed, freedom, nodes)
    _, resolvent = wishart_resolvent(points, transformed, freedom=freedom)
    integrand = points * (1 - points) ** (2 * depth) * steps
    modes = -2 * jnp.sum((integrand[:, None] * resolvent).real, axis=0)
    return jnp.sum(second_moments / gains * modes) / (2 * gains.size)


@partial(jax.jit, static_argnums=(3, 5))
def _euclidean(gains, spectrum, second_moments, depth, freedom, nodes):
    transformed = gains * spectrum
    upper, steps = _contour(transformed, freedom, nodes)
    companion, resolvent = wishart_resolvent(upper, transformed, freedom=freedom)
    weight = (1 - upper) ** depth * steps

    def both(array):
        return jnp.concatenate([array, array.conj()])

    def traces(values):
        return jnp.einsum("zk,wk->zw", _complex(values)[None, :] * resolvent, both(resolvent), precision="highest")

    start = second_moments / gains
    coupling = (upper * companion)[:, None] * both(upper * companion)[None, :] * _complex(1 / freedom)
    raised = coupling * traces(transformed * start) / (1 - coupling * traces(transformed**2))
    integrand = traces(gains * start) + raised * traces(gains * transformed)
    return jnp.sum((weight[:, None] * both(weight)[None, :] * integrand).real) / gains.size


class WishartHessian(NamedTuple):
    """Second derivatives at the best multiple of the identity, from [`isotropic_wishart_hessian`][].

    Along a symmetric matrix without trace the second variation is `(A + B) ‖X‖²/K`, along an antisymmetric one
    `(A − B) ‖X‖²/K`.
    """

    gain: Scalar
    """The best gain `1/(1 + c)`, the same at every depth."""
    own: Scalar
    """`A`."""
    coupling: Scalar
    """`B`."""


def isotropic_wishart_hessian(ratio: Scalar, *, depth: int) -> WishartHessian:
    """Whether the best `P = p I` is a minimum for isotropic Wishart tasks of many unknowns, `K/n → c`, and `S = I`.

    The law `h ρ(h) dh`, with `ρ` that of Marchenko and Pastur, is the semicircle around `1 + c` of variance `c`. By its
    symmetry the best gain is `p = 1/(1 + c)`, and with `v = c/(1 + c)²` and Catalan numbers `C_k` the moments of
    `m = 1 − p h` are

        α_{2k} = E[h m^{2k}] = C_k v^k,   α_{2k+1} = 0,
        β_k = E[h² m^k] = (1 + c)(α_k − α_{k+1}),   μ_k = E[m^k] = 1 − (1/(1 + c)) Σ_{j<k} α_j.

    A matrix `X` without trace is free from `H` in the limit, which leaves alternating words alone:

        A = Σ_{k≤2L−2} (L − |L−1−k|) μ_k β_{2L−2−k},   B = 2 Σ_{b≤L−2} (L−1−b) α_{2L−2−b} α_b.

    `P` is a saddle towards antisymmetric matrices where `ρ = B/A > 1`: never at `L = 2`, where `ρ = 2/(2 + c + c²)`;
    for small `c` at `L = 3`, where `ρ = 8/(7 + 5 c + 5 c² + c³)`; in a wider range at larger depth.

    Parameters
    ----------
    ratio
        `c`, size over degrees of freedom, positive.
    depth
        `L`, static.

    Raises
    ------
    ValueError
        For a depth below 1.

    >>> hessian = isotropic_wishart_hessian(jnp.array(0.25), depth=2)
    >>> round(float(hessian.coupling / hessian.own), 4), round(2 / 2.3125, 4)
    (0.8649, 0.8649)
    """
    if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
        raise ValueError(f"Training of a preconditioner takes a depth of at least one step; got {depth!r}.")
    variance, zero = ratio / (1 + ratio) ** 2, jnp.zeros_like(ratio)
    once = [zero if k % 2 else math.comb(k, k // 2) / (k // 2 + 1) * variance ** (k // 2) for k in range(2 * depth)]
    twice = [(1 + ratio) * (once[k] - once[k + 1]) for k in range(2 * depth - 1)]
    plain = [1 - sum(once[:k], zero) / (1 + ratio) for k in range(2 * depth - 1)]
    own, coupling = pair_moments(plain, twice, once, depth)
    return WishartHessian(1 / (1 + ratio), own, coupling)

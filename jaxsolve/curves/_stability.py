"""Whether a preconditioner that commutes with its tasks is a minimum of the population loss or a saddle."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Scalar
from ..solver import population_loss
from ._commuting import checked_weights, commuting_optimum


class PairHessian(NamedTuple):
    """Second derivatives of the population loss off the diagonal, from [`commuting_hessian`][].

    In the pair of entries `(δP_ij, δP_ji)` the Hessian is `[[A_ij, B_ij], [B_ij, A_ji]]`; entries of different pairs do
    not couple. The factor `1/K` of the loss is included.
    """

    own: Float[Array, "size size"]
    """`A_ij`."""
    coupling: Float[Array, "size size"]
    """`B_ij`, symmetric. On the diagonal the second derivative is `A_ii + B_ii`."""


def commuting_hessian(
    gains: Float[Array, " size"],
    eigenvalues: Float[Array, "draws size"],
    second_moments: Float[Array, " size"],
    *,
    depth: int,
    weights: Float[Array, " draws"] | None = None,
) -> PairHessian:
    """The Hessian of the population loss at `P = diag(p)`, for tasks `H = diag(h)` and `S = diag(s)`.

    With `m = 1 − p h`,

        A_ij = (s_j/K) E[h_j² (Σ_{a<L} m_i^a m_j^{L−1−a})²],
        B_ij = (1/K) E[h_i h_j (s_j m_j^L T_ij + s_i m_i^L T_ji)],   T_ij = Σ_{b≤L−2} (L−1−b) m_j^{L−2−b} m_i^b.

    Unlike the dynamics of the gains, these depend on the joint law of two modes. Any common eigenvectors will do, since
    a rotation of `P`, `H` and `S` does not change the loss.

    Parameters
    ----------
    gains, eigenvalues, second_moments, depth, weights
        As in [`commuting_loss`][]; rows of ``eigenvalues`` are draws of the joint law.

    Raises
    ------
    ValueError
        For shapes that do not fit and a depth below 1.

    >>> hessian = commuting_hessian(jnp.zeros(2), jnp.ones((1, 2)), jnp.ones(2), depth=2)
    >>> hessian.own.tolist(), hessian.coupling.tolist()
    ([[2.0, 2.0], [2.0, 2.0]], [[1.0, 1.0], [1.0, 1.0]])
    """
    weights = checked_weights(gains, eigenvalues, second_moments, weights, depth)
    factors = 1 - gains[None, :] * eigenvalues
    powers = [factors**exponent for exponent in range(depth + 1)]
    rows, columns = [p[:, :, None] for p in powers], [p[:, None, :] for p in powers]
    differences = sum((rows[a] * columns[depth - 1 - a] for a in range(depth)), jnp.zeros_like(rows[0]))
    twice = sum(
        ((depth - 1 - b) * columns[depth - 2 - b] * rows[b] for b in range(depth - 1)), jnp.zeros_like(differences)
    )
    scale = weights / gains.size
    own = jnp.einsum("d,dj,dij->ij", scale, second_moments[None, :] * eigenvalues**2, differences**2)
    half = second_moments[None, None, :] * columns[depth] * twice
    half = half + half.swapaxes(1, 2)
    coupling = jnp.einsum("d,di,dj,dij->ij", scale, eigenvalues, eigenvalues, half)
    return PairHessian(own, coupling)


def saddle_ratio(hessian: PairHessian) -> Float[Array, "size size"]:
    """`ρ_ij = B_ij / √(A_ij A_ji)`: where it exceeds 1 the loss falls along some `(δP_ij, δP_ji)`.

    The preconditioner is then a saddle of the population loss, although descent that starts in the commuting subspace
    never leaves it. Entries on the diagonal are below 1 and have no such meaning.

    >>> saddle_ratio(PairHessian(jnp.ones((2, 2)), 2 * jnp.ones((2, 2))))[0, 1].item()
    2.0
    """
    return hessian.coupling / jnp.sqrt(hessian.own * hessian.own.T)


def independent_saddle_ratio(
    nodes: Float[Array, " nodes"],
    weights: Float[Array, " nodes"],
    *,
    depth: int,
    moment_ratio: float | Scalar = 1.0,
) -> Scalar:
    """[`saddle_ratio`][] at the best gain, for two modes whose eigenvalues are independent draws of one law.

    With the moments `μ_k = E[m^k]`, `α_k = E[h m^k]` and `β_k = E[h² m^k]` of `m = 1 − p h` at the best `p`,

        ρ = κ · 2 Σ_{b≤L−2} (L−1−b) α_{2L−2−b} α_b / Σ_{c≤2L−2} (L − |L−1−c|) μ_c β_{2L−2−c},
        κ = (s_1 + s_2)/(2 √(s_1 s_2)) ≥ 1.

    A first error that is unequal in the two modes enlarges it. For the Marchenko–Pastur law and `κ = 1` the same number
    decides about isotropic Wishart tasks in high dimension: the multiple of the identity that is best there is a saddle
    towards antisymmetric matrices where `ρ > 1`.

    Parameters
    ----------
    nodes, weights
        A quadrature for the law of `h`, positive; see [`marchenko_pastur`][].
    depth
        `L`, static.
    moment_ratio
        `s_2 / s_1`.

    >>> spread = 1 + 1e-3 * jnp.array([-1.0, 1.0])
    >>> round(float(independent_saddle_ratio(spread, jnp.full(2, 0.5), depth=3)), 3)
    0.8
    """
    gain = commuting_optimum(nodes[:, None], depth=depth, weights=weights)[0]
    factors = 1 - gain * nodes
    plain, once, twice = (
        [jnp.sum(weights * nodes**order * factors**k) for k in range(2 * depth - 1)] for order in range(3)
    )
    own, coupling = pair_moments(plain, twice, once, depth)
    imbalance = (1 + moment_ratio) / (2 * jnp.sqrt(moment_ratio))
    return imbalance * coupling / own


def small_spread_ratio(moments: Float[Array, " orders"], *, depth: int, moment_ratio: float | Scalar = 1.0) -> Scalar:
    """The limit of [`independent_saddle_ratio`][] for eigenvalues that vary little from task to task,

        ρ = κ · 2 Σ_b (L−1−b) M_{2L−2−b} M_b / Σ_c (L − |L−1−c|) M_c M_{2L−2−c},

    with the moments `M_k` of the relative fluctuation of `h`. For a symmetric law: 1 at `L = 2`,
    `4 M_4/(2 M_4 + 3 M_2²)` at `L = 3`, `(3 M_6 + M_2 M_4)/(M_6 + 3 M_2 M_4)` at `L = 4`, all times `κ`. The scale of
    the fluctuation drops out.

    Parameters
    ----------
    moments
        `M_0 = 1, M_1 = 0, …, M_{2L−2}` of a symmetric law.
    depth
        `L`, static.
    moment_ratio
        `s_2 / s_1`.

    Raises
    ------
    ValueError
        Where the moments do not reach `2 L − 2`.

    >>> uniform = jnp.array([1.0, 0.0, 1 / 3, 0.0, 1 / 5])
    >>> round(float(small_spread_ratio(uniform, depth=3)), 4)
    1.0909
    """
    if moments.ndim != 1 or len(moments) < 2 * depth - 1 or depth < 1:
        raise ValueError(f"Depth {depth} takes moments of orders 0 to {2 * depth - 2}; got shape {moments.shape}.")
    own, coupling = pair_moments(moments, moments, moments, depth)
    return (1 + moment_ratio) / (2 * jnp.sqrt(moment_ratio)) * coupling / own


def second_variation(
    preconditioner: Float[Array, "size size"],
    direction: Float[Array, "size size"],
    operators: Float[Array, "tasks size size"],
    second_moment: Float[Array, "size size"],
    *,
    depth: int,
) -> Float[Array, " tasks"]:
    """`d²/dε²` of the population loss at `P + ε X`, for each task alone.

    Their mean is the second variation for a set of tasks, and their scatter gives its standard error where the tasks
    are draws. Differentiated twice in forward mode, for any `P`, `X` and `H`.

    Parameters
    ----------
    preconditioner, direction
        `P` and `X`.
    operators, second_moment, depth
        As in [`jaxsolve.solver.population_loss`][].

    >>> one = jnp.ones((1, 1))
    >>> second_variation(0.5 * one, one, one[None], one, depth=1).tolist()
    [1.0]
    """
    return _second_variation(preconditioner, direction, operators, second_moment, depth)


def pair_moments(plain, twice, once, depth):
    """`A` and `B` from the moments of `m = 1 − p h`, alone and with one and two factors `h`."""
    zero = jnp.zeros_like(plain[0] * twice[0])
    own = sum(((depth - abs(depth - 1 - c)) * plain[c] * twice[2 * depth - 2 - c] for c in range(2 * depth - 1)), zero)
    coupling = 2 * sum(((depth - 1 - b) * once[2 * depth - 2 - b] * once[b] for b in range(depth - 1)), zero)
    return own, coupling


@partial(jax.jit, static_argnums=4)
def _second_variation(preconditioner, direction, operators, second_moment, depth):
    def one(operator):
        def loss(shift):
            return population_loss(preconditioner + shift * direction, operator[None], second_moment, depth=depth)

        def slope(shift):
            return jax.jvp(loss, (shift,), (jnp.ones_like(shift),))[1]

        zero = jnp.zeros((), preconditioner.dtype)
        return jax.jvp(slope, (zero,), (jnp.ones_like(zero),))[1]

    return jax.lax.map(one, operators, batch_size=256)

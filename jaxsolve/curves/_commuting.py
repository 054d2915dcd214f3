"""Training of a preconditioner on tasks that share their eigenvectors: one equation per mode."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._results import RESULTS, first_failure, raise_failures
from .._types import Scalar
from ._flow import Flow, integrate


def commuting_loss(
    gains: Float[Array, " size"],
    eigenvalues: Float[Array, "draws size"],
    second_moments: Float[Array, " size"],
    *,
    depth: int,
    weights: Float[Array, " draws"] | None = None,
) -> Scalar:
    """The population loss of tasks that share their eigenvectors with `P` and `S`,

        1/(2K) Σ_k s_k E[(1 − p_k h_k)^{2 L}].

    It has the factor 1/2 and the normalisation of [`jaxsolve.solver.population_loss`][].

    Parameters
    ----------
    gains
        `p`, the eigenvalues of `P`.
    eigenvalues
        `h`, one row per task or per node of a quadrature. Only the law of each mode enters, not how modes depend on
        each other.
    second_moments
        `s`, the eigenvalues of `S`.
    depth
        `L`, static.
    weights
        Of the rows, with sum 1; equal by default.

    Raises
    ------
    ValueError
        For shapes that do not fit and a depth below 1.

    >>> float(commuting_loss(jnp.array([0.5]), jnp.ones((1, 1)), jnp.ones(1), depth=2))
    0.03125
    """
    weights = checked_weights(gains, eigenvalues, second_moments, weights, depth)
    powers = (1 - gains[None, :] * eigenvalues) ** (2 * depth)
    return jnp.sum(weights[:, None] * second_moments[None, :] * powers) / (2 * gains.size)


def commuting_gradient(
    gains: Float[Array, " size"],
    eigenvalues: Float[Array, "draws size"],
    second_moments: Float[Array, " size"],
    *,
    depth: int,
    weights: Float[Array, " draws"] | None = None,
) -> Float[Array, " size"]:
    """The gradient of [`commuting_loss`][]: `−(L/K) s_k E[h_k (1 − p_k h_k)^{2 L − 1}]`.

    It is the whole gradient of the loss with respect to the matrix `P`: entries off the diagonal are zero in the shared
    eigenvectors.

    >>> commuting_gradient(jnp.array([0.5]), jnp.ones((1, 1)), jnp.ones(1), depth=1).tolist()
    [-0.5]
    """
    weights = checked_weights(gains, eigenvalues, second_moments, weights, depth)
    powers = eigenvalues * (1 - gains[None, :] * eigenvalues) ** (2 * depth - 1)
    return -depth / gains.size * second_moments * jnp.sum(weights[:, None] * powers, axis=0)


def commuting_descent(
    initial: Float[Array, " size"],
    eigenvalues: Float[Array, "draws size"],
    second_moments: Float[Array, " size"],
    *,
    depth: int,
    learning_rate: Scalar,
    steps: int,
    weights: Float[Array, " draws"] | None = None,
) -> Float[Array, "states size"]:
    """Gains at steps `0, …, steps` of gradient descent; the parameters are those of [`commuting_loss`][].

    For isotropic Wishart tasks of `K` unknowns and a multiple of the identity as start, pass one mode with the nodes
    and weights of [`marchenko_pastur`][], and the learning rate divided by `K`.

    >>> path = commuting_descent(
    ...     jnp.zeros(1), jnp.ones((1, 1)), jnp.ones(1), depth=1, learning_rate=jnp.array(0.5), steps=2
    ... )
    >>> path.ravel().tolist()
    [0.0, 0.5, 0.75]
    """
    weights = checked_weights(initial, eigenvalues, second_moments, weights, depth)
    return _descent(initial, eigenvalues, second_moments, weights, learning_rate, depth, steps)


def commuting_flow(
    initial: Float[Array, " size"],
    eigenvalues: Float[Array, "draws size"],
    second_moments: Float[Array, " size"],
    *,
    depth: int,
    times: Float[Array, " points"],
    weights: Float[Array, " draws"] | None = None,
    throw: bool = True,
) -> Flow:
    """Gains along gradient flow, `dp_k/dt = (L/K) s_k E[h_k (1 − p_k h_k)^{2 L − 1}]`, by [`integrate`][].

    The other parameters are those of [`commuting_loss`][]. At depth 1 and for one task
    [`one_step_mode_flow`][] gives the same in closed form.

    >>> flow = commuting_flow(jnp.zeros(1), jnp.ones((1, 1)), jnp.ones(1), depth=2, times=jnp.array([0.0, 100.0]))
    >>> [round(value, 2) for value in flow.states.ravel().tolist()]
    [0.0, 0.95]
    """
    weights = checked_weights(initial, eigenvalues, second_moments, weights, depth)
    field = eqx.Partial(_flow_field, eigenvalues, second_moments, weights, depth)
    return integrate(field, initial, times=times, throw=throw)


def commuting_optimum(
    eigenvalues: Float[Array, "draws size"], *, depth: int, weights: Float[Array, " draws"] | None = None
) -> Float[Array, " size"]:
    """The gains at which [`commuting_gradient`][] vanishes: `E[h_k (1 − p_k h_k)^{2 L − 1}] = 0`, for any `s_k > 0`.

    The loss of a mode is convex, and for positive eigenvalues its minimum lies between the inverses of the largest and
    the smallest. It is found by bisection and polished by Newton's method.

    Parameters
    ----------
    eigenvalues
        `h`, positive.
    depth, weights
        As in [`commuting_loss`][].

    Raises
    ------
    ValueError
        For eigenvalues that are not positive.

    >>> commuting_optimum(jnp.array([[1.0], [3.0]]), depth=1).tolist()
    [0.4]
    """
    one = jnp.ones_like(eigenvalues[0])
    weights = checked_weights(one, eigenvalues, one, weights, depth)
    failed = ~(eigenvalues > 0).all(axis=0)
    eigenvalues = raise_failures(eigenvalues, first_failure((failed, RESULTS.not_positive)), of="modes")
    return _optimum(eigenvalues, weights, depth)


def checked_weights(gains, eigenvalues, second_moments, weights, depth):
    """The weights of the rows, where all shapes fit and the depth is at least 1."""
    if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
        raise ValueError(f"Training of a preconditioner takes a depth of at least one step; got {depth!r}.")
    draws = eigenvalues.shape[0]
    fits = eigenvalues.shape[1:] == gains.shape == second_moments.shape and gains.ndim == 1 and eigenvalues.size
    if not fits or (weights is not None and weights.shape != (draws,)):
        raise ValueError(
            "Gains and second moments have shape (size,), eigenvalues (draws, size) and weights (draws,), not empty; "
            f"got {gains.shape}, {second_moments.shape}, {eigenvalues.shape} and {getattr(weights, 'shape', None)}."
        )
    return jnp.full(draws, 1 / draws, eigenvalues.dtype) if weights is None else weights


def _flow_field(eigenvalues, second_moments, weights, depth, time, gains):
    del time
    return -commuting_gradient(gains, eigenvalues, second_moments, depth=depth, weights=weights)


@partial(jax.jit, static_argnums=(5, 6))
def _descent(initial, eigenvalues, second_moments, weights, learning_rate, depth, steps):
    def step(gains, _):
        gradient = commuting_gradient(gains, eigenvalues, second_moments, depth=depth, weights=weights)
        following = gains - learning_rate * gradient
        return following, following

    return jnp.concatenate([initial[None], jax.lax.scan(step, initial, length=steps)[1]])


@partial(jax.jit, static_argnums=2)
def _optimum(eigenvalues, weights, depth):
    def slope(gains):
        powers = eigenvalues * (1 - gains[None, :] * eigenvalues) ** (2 * depth - 1)
        return jnp.sum(weights[:, None] * powers, axis=0)

    def halve(ends, _):
        low, high = ends
        middle = jnp.sqrt(low * high)
        rising = slope(middle) > 0
        return (jnp.where(rising, middle, low), jnp.where(rising, high, middle)), None

    ends = 1 / eigenvalues.max(axis=0), 1 / eigenvalues.min(axis=0)
    low, high = jax.lax.scan(halve, ends, length=60)[0]
    gains = jnp.sqrt(low * high)
    for _ in range(2):
        powers = eigenvalues**2 * (1 - gains[None, :] * eigenvalues) ** (2 * depth - 2)
        falling = (2 * depth - 1) * jnp.sum(weights[:, None] * powers, axis=0)
        gains = gains + jnp.where(falling > 0, slope(gains) / jnp.where(falling > 0, falling, 1), 0)
    return jnp.clip(gains, *ends)

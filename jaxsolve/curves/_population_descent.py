"""Descent on all entries of a preconditioner, against which closed dynamics are held, and tasks on a ring."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Scalar
from ..solver import population_gradient


def population_descent(
    initial: Float[Array, "size size"],
    operators: Float[Array, "tasks size size"],
    second_moment: Float[Array, "size size"],
    *,
    depth: int,
    learning_rate: Scalar,
    steps: int,
) -> Float[Array, "states size size"]:
    """Preconditioners at steps `0, …, steps` of gradient descent on the population loss, all entries free.

    The gradient is that of [`jaxsolve.solver.population_gradient`][], whose docstring describes the operators, the
    second moment, the depth and what is raised.

    Parameters
    ----------
    initial
        `P_0`.
    operators, second_moment, depth
        `H`, `S` and `L`.
    learning_rate
        `η`.
    steps
        Static.

    >>> one = jnp.ones((1, 1))
    >>> population_descent(0 * one, one[None], one, depth=1, learning_rate=jnp.array(0.5), steps=2).ravel().tolist()
    [0.0, 0.5, 0.75]
    """
    return _descent(initial, operators, second_moment, learning_rate, depth, steps)


def periodic_diffusion(
    coefficients: Float[Array, "tasks size"], *, reaction: float | Scalar
) -> Float[Array, "tasks size size"]:
    """Operators `H = Bᵀ diag(a) B + c I` on a ring, with `B` the difference between neighbours.

    Their law is unchanged by cyclic shifts where that of the coefficients is. They do not commute.

    Parameters
    ----------
    coefficients
        `a`, one for each edge between neighbours.
    reaction
        `c`; without it constants are in the kernel.

    >>> periodic_diffusion(jnp.array([[1.0, 2.0, 3.0]]), reaction=1.0)[0].tolist()
    [[5.0, -1.0, -3.0], [-1.0, 4.0, -2.0], [-3.0, -2.0, 6.0]]
    """
    size = coefficients.shape[1]
    identity = jnp.eye(size, dtype=coefficients.dtype)
    difference = jnp.roll(identity, 1, axis=1) - identity
    stiffness = jnp.einsum("ki,tk,kj->tij", difference, coefficients, difference, precision="highest")
    return stiffness + reaction * identity[None]


@partial(jax.jit, static_argnums=(4, 5))
def _descent(initial, operators, second_moment, learning_rate, depth, steps):
    def step(matrix, _):
        _, gradient = population_gradient(matrix, operators, second_moment, depth=depth)
        following = matrix - learning_rate * gradient
        return following, following

    return jnp.concatenate([initial[None], jax.lax.scan(step, initial, length=steps)[1]])

"""The decoder: a preconditioned Richardson iteration of fixed depth."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Scalar
from ._shapes import check_systems, checked_depth


def rollout(
    preconditioner: Float[Array, "size size"] | Float[Array, "tasks size size"],
    operators: Float[Array, "tasks size size"],
    right_hand_sides: Float[Array, "tasks size"],
    initial: Float[Array, "tasks size"],
    *,
    depth: int,
) -> Float[Array, "tasks size"]:
    """The last iterate `z_L` of the preconditioned Richardson iteration

        z_{l+1} = z_l + P (b − H z_l).

    Its error obeys `z_L − z* = (I − P H)^L (z_0 − z*)` for any `H` and `P`, symmetric or not. In single precision the
    products are taken in full single precision on every device, because the residual is a difference of nearly equal
    numbers.

    Parameters
    ----------
    preconditioner
        `P`, shared by all tasks or one per task.
    operators, right_hand_sides
        `H` and `b`.
    initial
        `z_0`.
    depth
        `L`, static; at depth 0 the result is ``initial``.

    Raises
    ------
    ValueError
        For a depth that is negative or not an integer, shapes that do not fit, and dtypes that are not one floating
        dtype.

    >>> import jax.numpy as jnp
    >>> rollout(jnp.eye(1), 0.5 * jnp.ones((1, 1, 1)), jnp.ones((1, 1)), jnp.zeros((1, 1)), depth=2).tolist()
    [[1.5]]
    """
    check_systems(preconditioner, operators, right_hand_sides=right_hand_sides, initial=initial)
    return _iterate(preconditioner, operators, right_hand_sides, initial, checked_depth(depth))


def trajectory(
    preconditioner: Float[Array, "size size"] | Float[Array, "tasks size size"],
    operators: Float[Array, "tasks size size"],
    right_hand_sides: Float[Array, "tasks size"],
    initial: Float[Array, "tasks size"],
    *,
    depth: int,
) -> Float[Array, "iterates tasks size"]:
    """All `L + 1` iterates `z_0, ..., z_L` of [`rollout`][], which describes the parameters and what is raised."""
    check_systems(preconditioner, operators, right_hand_sides=right_hand_sides, initial=initial)
    return _iterates(preconditioner, operators, right_hand_sides, initial, checked_depth(depth))


def training_loss(final: Float[Array, "tasks size"], solutions: Float[Array, "tasks size"]) -> Scalar:
    """`1/(2 N K) Σ_i ‖z_{i,L} − z*_i‖²` over `N` tasks of size `K`: half the mean square over all entries.

    Raises
    ------
    ValueError
        Where the shapes differ.

    >>> import jax.numpy as jnp
    >>> float(training_loss(jnp.ones((2, 3)), jnp.zeros((2, 3))))
    0.5
    """
    if final.shape != solutions.shape or not final.size:
        raise ValueError(
            f"training_loss compares iterates and solutions of one shape, not empty; got {final.shape} and "
            f"{solutions.shape}."
        )
    return jnp.mean((final - solutions) ** 2) / 2


def _step(preconditioner, operators, right_hand_sides, state):
    axes = "ij" if preconditioner.ndim == 2 else "tij"
    residual = right_hand_sides - jnp.einsum("tij,tj->ti", operators, state, precision="highest")
    return state + jnp.einsum(f"{axes},tj->ti", preconditioner, residual, precision="highest")


@partial(jax.jit, static_argnums=4)
def _iterate(preconditioner, operators, right_hand_sides, initial, depth):
    step = partial(_step, preconditioner, operators, right_hand_sides)
    final, _ = jax.lax.scan(lambda state, _: (step(state), None), initial, length=depth)
    return final


@partial(jax.jit, static_argnums=4)
def _iterates(preconditioner, operators, right_hand_sides, initial, depth):
    step = partial(_step, preconditioner, operators, right_hand_sides)
    final, before = jax.lax.scan(lambda state, _: (step(state), state), initial, length=depth)
    return jnp.concatenate([before, final[None]])

"""Prompts of an equation with parameters, and the box that its parameters lie in."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._types import Key


class Prompts(NamedTuple):
    """Examples `(u_j, f_j)` of an equation, `m` pairs per task.

    Attributes
    ----------
    states
        `u_j`.
    loads
        `f_j`, as load vectors: without noise `A u_j = f_j`.
    """

    states: Float[Array, "tasks pairs size"]
    loads: Float[Array, "tasks pairs size"]


def draw_prompts(
    operators: Float[Array, "tasks size size"],
    *,
    pairs: int,
    load_noise: float | Float[Array, ""] = 0.0,
    state_noise: float | Float[Array, ""] = 0.0,
    key: Key,
) -> Prompts:
    """Prompts of each task: `f_j ~ N(0, I)`, `u_j = A^{-1} f_j`, both observed with noise.

    What is observed is `f_j + s_f ξ_j` and `u_j + s_u ζ_j`, with independent standard normal `ξ` and `ζ`: the noise of
    the loads is relative to loads of size one, that of the states absolute.

    Parameters
    ----------
    operators
        `A`.
    pairs
        `m`.
    load_noise, state_noise
        `s_f` and `s_u`.
    key
        For forces and noise. The forces do not depend on the noise.

    Raises
    ------
    ValueError
        For operators that are not a batch of square matrices, and fewer than one pair.
    """
    if operators.ndim != 3 or operators.shape[1] != operators.shape[2]:
        raise ValueError(f"operators have shape (tasks, size, size); got {operators.shape}.")
    if pairs < 1:
        raise ValueError(f"A prompt has at least one pair; got {pairs}.")
    shape = (operators.shape[0], pairs, operators.shape[1])

    def normal(key):
        return jax.random.normal(key, (math.prod(shape),), operators.dtype).reshape(shape)

    force_key, load_key, state_key = jax.random.split(key, 3)
    forces = normal(force_key)
    states = jnp.linalg.solve(operators, forces.swapaxes(1, 2)).swapaxes(1, 2)
    return Prompts(states + state_noise * normal(state_key), forces + load_noise * normal(load_key))


def project_to_box(
    coefficients: Float[Array, "tasks parameters"], *, radius: float = 1.0
) -> tuple[Float[Array, "tasks parameters"], Int[Array, ""]]:
    """The nearest point of the box `|z_k| ≤ radius` for each task, and how many tasks it moved.

    A NaN stays NaN and counts as moved.

    Raises
    ------
    ValueError
        For a radius that is not positive and finite.

    >>> projected, moved = project_to_box(jnp.array([[0.5, 2.0], [0.0, 1.0]]))
    >>> projected.tolist(), int(moved)
    ([[0.5, 1.0], [0.0, 1.0]], 1)
    """
    if not 0 < radius < np.inf:
        raise ValueError(f"A box has a radius that is positive and finite; got {radius}.")
    inside: Bool[Array, "tasks parameters"] = jnp.abs(coefficients) <= radius
    return jnp.clip(coefficients, -radius, radius), jnp.sum(~inside.all(axis=1))

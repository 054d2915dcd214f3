"""The residual of a learned solver as a function of its parameters, with the scale that makes training lazy."""

from typing import TypeVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Scalar
from ..preconditioners import AbstractPreconditioner
from ..solver import rollout

Preconditioner = TypeVar("Preconditioner", bound=AbstractPreconditioner)


class RolloutResidual(eqx.Module):
    """`r(θ) = α (z_L(θ) − z_L(θ_0)) + z_L(θ_0) − z*`, all tasks after each other.

    At `α = 1` this is the error of the last iterate, and `‖r‖² / (2 n)` with `n` tasks times unknowns is the training
    loss. For any scale `α` the residual of the start is the same, the Jacobian is `α` times as large, and descent with
    the learning rate `η / α²` has the same linearised curve; the parameters move by `1/α` as far (Chizat, Oyallon and
    Bach, 2019).

    Attributes
    ----------
    data
        The preconditioner without its parameters.
    operators, right_hand_sides, initial, solutions
        The tasks.
    start
        `z_L(θ_0)`.
    scale
        `α`.
    depth
        `L`.
    """

    data: AbstractPreconditioner
    operators: Float[Array, "tasks size size"]
    right_hand_sides: Float[Array, "tasks size"]
    initial: Float[Array, "tasks size"]
    solutions: Float[Array, "tasks size"]
    start: Float[Array, "tasks size"]
    scale: Scalar
    depth: int = eqx.field(static=True)

    def __call__(self, parameters: AbstractPreconditioner) -> Float[Array, " outputs"]:
        """The residual at ``parameters``, of length tasks times size."""
        matrix = eqx.combine(parameters, self.data).matrix(self.operators)
        final = rollout(matrix, self.operators, self.right_hand_sides, self.initial, depth=self.depth)
        return (self.scale * (final - self.start) + (self.start - self.solutions)).ravel()


def rollout_residual(
    preconditioner: Preconditioner,
    operators: Float[Array, "tasks size size"],
    right_hand_sides: Float[Array, "tasks size"],
    initial: Float[Array, "tasks size"],
    solutions: Float[Array, "tasks size"],
    *,
    depth: int,
    scale: Scalar | float = 1.0,
) -> tuple[RolloutResidual, Preconditioner]:
    """The residual function of a solver at its start, and the parameters `θ_0`.

    Parameters
    ----------
    preconditioner
        The model at the start.
    operators, right_hand_sides, initial, solutions
        `H`, `b`, `z_0` and `z*`.
    depth
        `L`, static.
    scale
        `α` of [`RolloutResidual`][].

    Raises
    ------
    ValueError
        As the preconditioner and [`jaxsolve.solver.rollout`][] do.
    """
    parameters, data = eqx.partition(preconditioner, preconditioner.trainable())
    start = rollout(preconditioner.matrix(operators), operators, right_hand_sides, initial, depth=depth)
    scale = jnp.asarray(scale, start.dtype)
    fields = (data, operators, right_hand_sides, initial, solutions, start, scale, depth)
    return RolloutResidual(*fields), parameters

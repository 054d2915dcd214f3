"""Training of a preconditioner on a family of systems."""

from collections.abc import Callable
from typing import overload

import equinox as eqx
import numpy as np
import optax
from jaxtyping import Array, Float, PyTree

from .._train import Descent, descend
from .._types import ArrayLike
from ..preconditioners import AbstractPreconditioner
from ._rollout import rollout, training_loss


def pretrain(
    preconditioner: AbstractPreconditioner,
    operators: Float[Array, "tasks size size"],
    right_hand_sides: Float[Array, "tasks size"],
    initial: Float[Array, "tasks size"],
    solutions: Float[Array, "tasks size"],
    *,
    depth: int,
    optimizer: optax.GradientTransformation,
    steps: int,
    observe: Callable[[PyTree], PyTree] | None = None,
    record_every: int = 1,
    throw: bool = True,
) -> Descent:
    """Train the parameters of a preconditioner on the loss of a whole rollout, all tasks at every step.

    The loss is `1/(2 N K) Σ_i ‖z_{i,L} − z*_i‖²` over `N` tasks of size `K`, differentiated through all `L` layers.
    What the preconditioner counts as data, for instance tokens, stays as it is.

    Parameters
    ----------
    preconditioner
        The start; trained is what its ``trainable`` marks.
    operators, right_hand_sides, initial, solutions
        `H`, `b`, `z_0` and `z*`.
    depth
        `L`, static.
    optimizer
        Of Optax.
    steps
        Number of steps.
    observe, record_every
        What is recorded of the preconditioner, and every how many steps; nothing by default.
    throw
        Whether to raise for a loss that is not finite.

    Returns
    -------
    run
        ``run.parameters`` is the trained preconditioner; ``run.losses`` are the losses before each step.

    Raises
    ------
    ValueError
        As [`rollout`][] does, and for a loss that is not finite.

    >>> import jax.numpy as jnp
    >>> from jaxsolve.preconditioners import FreeLinear
    >>> one, zero = jnp.ones((1, 1)), jnp.zeros((1, 1))
    >>> start = FreeLinear(0.5 * one)
    >>> run = pretrain(start, one[None], one, zero, one, depth=1, optimizer=optax.sgd(0.5), steps=2)
    >>> run.parameters.entries.tolist(), run.losses.tolist()
    ([[0.875]], [0.125, 0.03125])
    """
    loss = eqx.Partial(
        _loss_and_gradient,
        operators=operators,
        right_hand_sides=right_hand_sides,
        initial=initial,
        solutions=solutions,
        depth=depth,
    )
    return descend(
        loss,
        preconditioner,
        optimizer,
        steps=steps,
        observe=observe,
        record_every=record_every,
        trainable=preconditioner.trainable(),
        throw=throw,
    )


@overload
def wishart_operators(
    factors: Float[Array, "tasks size freedom"], spectrum: Float[ArrayLike, " size"]
) -> Float[Array, "tasks size size"]: ...


@overload
def wishart_operators(
    factors: Float[np.ndarray, "tasks size freedom"], spectrum: Float[np.ndarray, " size"]
) -> Float[np.ndarray, "tasks size size"]: ...


def wishart_operators(
    factors: Float[ArrayLike, "tasks size freedom"], spectrum: Float[ArrayLike, " size"]
) -> Float[ArrayLike, "tasks size size"]:
    """Operators `H = S^{1/2} W S^{1/2}` with `S = diag(spectrum)` and `W = Z Zᵀ / n`, from factors `Z`.

    `Z` has shape `(size, n)`. With independent standard normal entries, `W` is a Wishart matrix over its `n` degrees of
    freedom and `E[H] = S`; with `n ≥ size` the operators are positive definite with probability one. They do not
    commute. The result is an array of the library that the factors come from.

    Parameters
    ----------
    factors
        `Z`, drawn by the caller, with one leading axis over tasks.
    spectrum
        `S`, not negative; not checked.

    Raises
    ------
    ValueError
        For shapes that do not fit.

    >>> import jax.numpy as jnp
    >>> wishart_operators(jnp.array([[[1.0, 1.0], [1.0, -1.0]]]), jnp.array([1.0, 4.0])).tolist()
    [[[1.0, 0.0], [0.0, 4.0]]]
    """
    if factors.ndim != 3 or not factors.size or spectrum.shape != factors.shape[1:2]:
        raise ValueError(
            "wishart_operators takes factors (tasks, size, degrees of freedom), not empty, and a spectrum (size,); got "
            f"{factors.shape} and {spectrum.shape}."
        )
    scaled = spectrum[None, :, None] ** 0.5 * factors
    return scaled @ scaled.swapaxes(1, 2) / factors.shape[2]


def _loss_and_gradient(preconditioner, *, operators, right_hand_sides, initial, solutions, depth):
    @eqx.filter_value_and_grad
    def loss(preconditioner):
        matrix = preconditioner.matrix(operators)
        return training_loss(rollout(matrix, operators, right_hand_sides, initial, depth=depth), solutions)

    return loss(preconditioner)

"""Loss and gradient with the expectation over first errors taken in closed form."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._arguments import checked_depth
from .._types import Scalar
from ._blocks import tasks_per_block
from ._shapes import check_population
from ._systems import product

HORNER = 8
"""Largest depth at which Horner's rule needs no more products than doubling."""


def population_loss(
    preconditioner: Float[Array, "size size"] | Float[Array, "tasks size size"],
    operators: Float[Array, "tasks size size"],
    second_moment: Float[Array, "size size"],
    *,
    depth: int,
) -> Scalar:
    """Training loss of a rollout, averaged over first errors of a given second moment.

    With `e_0 = z_0 − z*` independent of `H`, `S = E[e_0 e_0ᵀ]` and `M = I − P H`, the expectation of
    `1/(2K) ‖e_L‖²` is

        1/(2K) · mean over tasks of tr[M^L S (Mᵀ)^L].

    It has the factor 1/2 and the normalisation of [`training_loss`][]: the depth risk `E‖e_L‖²/K` is twice as large. No
    right-hand side is drawn.

    Parameters
    ----------
    preconditioner
        `P`, shared by all tasks or one per task.
    operators
        `H`, a sample of the tasks or all of them, each with the same weight.
    second_moment
        `S`. Only its symmetric part enters.
    depth
        `L`, static.

    Raises
    ------
    ValueError
        For a depth that is negative or not an integer, shapes that do not fit, and dtypes that are not one floating
        dtype.

    >>> import jax.numpy as jnp
    >>> one = jnp.ones((1, 1))
    >>> float(population_loss(0.5 * one, one[None], one, depth=2))
    0.03125
    """
    check_population(preconditioner, operators, second_moment)
    return _loss(preconditioner, operators, second_moment, checked_depth(depth))


def population_gradient(
    preconditioner: Float[Array, "size size"] | Float[Array, "tasks size size"],
    operators: Float[Array, "tasks size size"],
    second_moment: Float[Array, "size size"],
    *,
    depth: int,
) -> tuple[Scalar, Float[Array, "size size"] | Float[Array, "tasks size size"]]:
    """[`population_loss`][], which describes the parameters and what is raised, and its gradient.

    With respect to the preconditioner it is

        −(1/K) · mean over tasks of Σ_{l=0}^{L−1} (Mᵀ)^{L−1−l} M^L S (Mᵀ)^l Hᵀ,

    summed by the doubling `X_{a+b} = (Mᵀ)^b X_a + X_b (Mᵀ)^a`, whose cost grows with the logarithm of the depth; up to
    depth 8 by Horner's rule. For a preconditioner of each task the mean over tasks becomes a factor 1/N.

    Returns
    -------
    loss
        The loss.
    gradient
        Its gradient, in the shape of the preconditioner.

    >>> import jax.numpy as jnp
    >>> one = jnp.ones((1, 1))
    >>> loss, gradient = population_gradient(0.5 * one, one[None], one, depth=1)
    >>> float(loss), gradient.tolist()
    (0.125, [[-0.5]])
    """
    check_population(preconditioner, operators, second_moment)
    return _loss_and_gradient(preconditioner, operators, second_moment, checked_depth(depth))


@partial(jax.jit, static_argnums=3)
def _loss(preconditioner, operators, second_moment, depth):
    def one(matrices):
        power = _power(_iteration(*matrices), depth)
        return jnp.sum(product("ij,jk->ik", power, second_moment) * power)

    return _over_tasks(one, preconditioner, operators).mean() / (2 * operators.shape[-1])


@partial(jax.jit, static_argnums=3)
def _loss_and_gradient(preconditioner, operators, second_moment, depth):
    symmetric = (second_moment + second_moment.T) / 2
    summed = _summed_by_horner if depth <= HORNER else _summed_by_doubling

    def one(matrices):
        iteration = _iteration(*matrices)
        power = _power(iteration, depth)
        last = product("ij,jk->ik", power, symmetric)
        found = summed(iteration.T, last, depth)
        return jnp.sum(last * power), -product("ij,kj->ik", found, matrices[1])

    tasks, size = operators.shape[:2]
    losses, gradients = _over_tasks(one, preconditioner, operators)
    gradient = (gradients.sum(axis=0) if preconditioner.ndim == 2 else gradients) / (tasks * size)
    return losses.mean() / (2 * size), gradient


def _over_tasks(function, preconditioner, operators):
    tasks, size = operators.shape[:2]
    per_block = tasks_per_block(tasks, size, operators.dtype.itemsize, jax.default_backend())
    if preconditioner.ndim == 2:
        return jax.lax.map(lambda operator: function((preconditioner, operator)), operators, batch_size=per_block)
    return jax.lax.map(function, (preconditioner, operators), batch_size=per_block)


def _iteration(preconditioner, operator):
    return jnp.eye(operator.shape[0], dtype=operator.dtype) - product("ij,jk->ik", preconditioner, operator)


def _power(matrix, depth):
    def double(power, bit):
        square = product("ij,jk->ik", power, power)
        return jax.lax.cond(bit, lambda: product("ij,jk->ik", square, matrix), lambda: square), None

    return jax.lax.scan(double, matrix, _bits(depth))[0] if depth else jnp.eye(matrix.shape[0], dtype=matrix.dtype)


def _summed_by_horner(transposed, last, depth):
    def step(state, _):
        found, term = state
        return (product("ij,jk->ik", transposed, found) + term, product("ij,jk->ik", term, transposed)), None

    return jax.lax.scan(step, (jnp.zeros_like(last), last), length=depth)[0][0]


def _summed_by_doubling(transposed, last, depth):
    def double(state, bit):
        power, found = state
        found = product("ij,jk->ik", power, found) + product("ij,jk->ik", found, power)
        power = product("ij,jk->ik", power, power)

        def one_more():
            after = product("ij,jk->ik", transposed, found) + product("ij,jk->ik", last, power)
            return product("ij,jk->ik", power, transposed), after

        return jax.lax.cond(bit, one_more, lambda: (power, found)), None

    return jax.lax.scan(double, (transposed, last), _bits(depth))[0][1]


def _bits(depth):
    """The binary digits of the depth behind its first."""
    return jnp.asarray([digit == "1" for digit in f"{depth:b}"[1:]], bool)

"""Plain gradient descent on a mean square, with the loss before every step."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .._types import Scalar


def descent_curve(
    residual: Callable[[PyTree], Float[Array, " outputs"]],
    parameters: PyTree,
    *,
    learning_rate: Scalar,
    steps: int,
) -> Float[Array, " points"]:
    """The loss along plain full-batch gradient descent, `θ_{s+1} = θ_s − η grad ℓ(θ_s)`.

    The loss is `ℓ = ‖r(θ)‖² / (2 n)`: half the mean square over the `n` outputs. A run that diverges returns what it
    is, infinite or NaN.

    Parameters
    ----------
    residual
        `r`, a pure function of the parameters; pass data as fields of an Equinox module that is called.
    parameters
        `θ_0`, a pytree of arrays of one floating dtype.
    learning_rate
        `η`.
    steps
        Number of updates `S`, static and at least 0.

    Returns
    -------
    Array
        `ℓ(θ_0), …, ℓ(θ_S)`.

    Raises
    ------
    ValueError
        For a negative number of steps.

    >>> descent_curve(lambda value: value[None], jnp.array(1.0), learning_rate=jnp.array(0.5), steps=2).tolist()
    [0.5, 0.125, 0.03125]
    """
    if steps < 0:
        raise ValueError(f"steps counts updates and is at least 0; got {steps}.")
    return _descent_curve(residual, parameters, learning_rate, steps)


def loss_drop(loss: Float[Array, "*runs points"]) -> Float[Array, "*runs"]:
    """The share of its first value that a loss curve has lost at its end, `1 − ℓ_S / ℓ_0`.

    >>> loss_drop(jnp.array([4.0, 2.0, 1.0])).item()
    0.75
    """
    return 1 - loss[..., -1] / loss[..., 0]


@eqx.filter_jit
def _descent_curve(residual, parameters, learning_rate, steps: int):
    def loss(free):
        return jnp.mean(residual(free) ** 2) / 2

    def step(free, _):
        value, gradient = jax.value_and_grad(loss)(free)
        return jax.tree.map(lambda leaf, slope: leaf - learning_rate * slope, free, gradient), value

    final, before = jax.lax.scan(step, parameters, length=steps)
    return jnp.concatenate([before, loss(final)[None]])

"""The gradient of the training loss with respect to the preconditioner, by the adjoint recursion."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Scalar
from ._shapes import check_systems, checked_depth


def adjoint_gradient(
    preconditioner: Float[Array, "size size"] | Float[Array, "tasks size size"],
    operators: Float[Array, "tasks size size"],
    right_hand_sides: Float[Array, "tasks size"],
    initial: Float[Array, "tasks size"],
    solutions: Float[Array, "tasks size"],
    *,
    depth: int,
) -> tuple[Scalar, Float[Array, "size size"] | Float[Array, "tasks size size"]]:
    """Training loss of a rollout and its gradient with respect to the preconditioner.

    With the residuals `r_l = b − H z_l` of the iteration `z_{l+1} = z_l + P r_l`, the loss
    `1/(2 N K) Σ_i ‖z_{i,L} − z*_i‖²` over `N` tasks of size `K` has the gradient

        λ_L    = (z_L − z*) / (N K),
        λ_l    = λ_{l+1} − Hᵀ Pᵀ λ_{l+1},
        grad_P = Σ_i Σ_{l=0}^{L−1} λ_{i,l+1} r_{i,l}ᵀ,

    for any `H` and `P`, symmetric or not. The residuals of all steps are kept (`L N K` numbers). The gradient with
    respect to parameters of `P` follows by pulling ``grad_P`` back through them.

    Parameters
    ----------
    preconditioner
        `P`, shared by all tasks or one per task; in the second case the sum over tasks is not taken.
    operators, right_hand_sides
        `H` and `b`.
    initial, solutions
        `z_0` and `z*`.
    depth
        `L`, static; at depth 0 the gradient is zero.

    Returns
    -------
    loss
        The loss above.
    gradient
        ``grad_P``, in the shape of the preconditioner.

    Raises
    ------
    ValueError
        For a depth that is negative or not an integer, shapes that do not fit, and dtypes that are not one floating
        dtype.

    >>> import jax.numpy as jnp
    >>> one = jnp.ones((1, 1))
    >>> loss, gradient = adjoint_gradient(0.5 * one, one[None], one, 0.0 * one, one, depth=1)
    >>> float(loss), gradient.tolist()
    (0.125, [[-0.5]])
    """
    check_systems(preconditioner, operators, right_hand_sides=right_hand_sides, initial=initial, solutions=solutions)
    return _adjoint_gradient(preconditioner, operators, right_hand_sides, initial, solutions, checked_depth(depth))


@partial(jax.jit, static_argnums=5)
def _adjoint_gradient(preconditioner, operators, right_hand_sides, initial, solutions, depth):
    axes = "ij" if preconditioner.ndim == 2 else "tij"
    product = partial(jnp.einsum, precision="highest")

    def forward(state, _):
        residual = right_hand_sides - product("tij,tj->ti", operators, state)
        return state + product(f"{axes},tj->ti", preconditioner, residual), residual

    def backward(carry, residual):
        adjoint, gradient = carry
        gradient = gradient + product(f"ti,tj->{axes}", adjoint, residual)
        pulled_back = product(f"{axes},ti->tj", preconditioner, adjoint)
        return (adjoint - product("tij,ti->tj", operators, pulled_back), gradient), None

    final, residuals = jax.lax.scan(forward, initial, length=depth)
    error = final - solutions
    start = (error / error.size, jnp.zeros_like(preconditioner))
    (_, gradient), _ = jax.lax.scan(backward, start, residuals, reverse=True)
    return jnp.sum(error**2) / (2 * error.size), gradient

"""The gradient of the training loss with respect to the preconditioner, by the adjoint recursion."""

from functools import partial

import jax
from jaxtyping import Array, Float

from .._arguments import checked_depth
from .._types import Scalar
from ._methods import checked_method
from ._rollout import rollout, training_loss
from ._shapes import check_systems
from ._systems import Systems


def adjoint_gradient(
    preconditioner: Float[Array, "size size"] | Float[Array, "tasks size size"],
    operators: Float[Array, "tasks size size"],
    right_hand_sides: Float[Array, "tasks size"],
    initial: Float[Array, "tasks size"],
    solutions: Float[Array, "tasks size"],
    *,
    depth: int,
    method: str = "auto",
) -> tuple[Scalar, Float[Array, "size size"] | Float[Array, "tasks size size"]]:
    """Training loss of a rollout and its gradient with respect to the preconditioner.

    With the residuals `r_l = b − H z_l` of the iteration `z_{l+1} = z_l + P r_l`, the loss
    `1/(2 N K) Σ_i ‖z_{i,L} − z*_i‖²` over `N` tasks of size `K` has the gradient

        λ_L    = (z_L − z*) / (N K),
        λ_l    = λ_{l+1} − Hᵀ Pᵀ λ_{l+1},
        grad_P = Σ_i Σ_{l=0}^{L−1} λ_{i,l+1} r_{i,l}ᵀ,

    for any `H` and `P`, symmetric or not. The gradient with respect to parameters of `P` follows by pulling ``grad_P``
    back through them.

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
    method
        How loss and sums are computed, a name that [`rollout`][] explains, static.

    Returns
    -------
    loss
        The loss above.
    gradient
        ``grad_P``, in the shape of the preconditioner.

    Raises
    ------
    ValueError
        For a depth that is negative or not an integer, shapes that do not fit, dtypes that are not one floating dtype,
        and a method that does not exist.

    >>> import jax.numpy as jnp
    >>> one = jnp.ones((1, 1))
    >>> loss, gradient = adjoint_gradient(0.5 * one, one[None], one, 0.0 * one, one, depth=1)
    >>> float(loss), gradient.tolist()
    (0.125, [[-0.5]])
    """
    check_systems(preconditioner, operators, right_hand_sides=right_hand_sides, initial=initial, solutions=solutions)
    depth = checked_depth(depth)
    systems = Systems(preconditioner, operators, right_hand_sides, initial)
    return _loss_and_gradient(systems, solutions, depth, checked_method(method, systems, depth))


@partial(jax.jit, static_argnums=(2, 3))
def _loss_and_gradient(systems, solutions, depth, method):
    def last(preconditioner):
        return rollout(preconditioner, *systems[1:], depth=depth, method=method)

    final, pull_back = jax.vjp(last, systems.preconditioner)
    (gradient,) = pull_back((final - solutions) / final.size)
    return training_loss(final, solutions), gradient

"""The tangent kernel of the decoder with respect to one preconditioner, without a Jacobian."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._arguments import checked_depth
from ._shapes import check_systems


def rollout_kernel(
    preconditioner: Float[Array, "size size"],
    operators: Float[Array, "tasks size size"],
    right_hand_sides: Float[Array, "tasks size"],
    initial: Float[Array, "tasks size"],
    *,
    depth: int,
) -> Float[Array, "outputs outputs"]:
    """Tangent kernel `J Jᵀ` of the last iterates `z_L` with respect to one preconditioner, shared by tasks and layers.

    With `M_i = I − P H_i` and the residuals `r_l = b − H z_l` of the iteration `z_{l+1} = z_l + P r_l`, `P` enters at
    every layer, and the kernel has the cross terms of all pairs of layers:

        Θ[(i,a),(j,b)] = Σ_{l,m<L} [M_i^{L−1−l} (M_j^{L−1−m})ᵀ]_{ab} ⟨r_{i,l}, r_{j,m}⟩,

    for any `H` and `P`, symmetric or not. Nothing is divided by the number of outputs. The Jacobian, `K³` numbers for
    each of the `N` tasks of size `K`, is not formed: memory beyond the result is a few times the powers of `M`,
    `L N K²` numbers, and the work `N² (L K³ + L² K²)`.

    Parameters
    ----------
    preconditioner
        `P`.
    operators, right_hand_sides
        `H` and `b`.
    initial
        `z_0`.
    depth
        `L`, static; at depth 0 the kernel is zero.

    Returns
    -------
    Array
        `(N K, N K)`; row `i K + a` belongs to unknown `a` of task `i`.

    Raises
    ------
    ValueError
        For a preconditioner per task, a depth that is negative or not an integer, shapes that do not fit, and dtypes
        that are not one floating dtype.

    >>> import jax.numpy as jnp
    >>> one = jnp.ones((1, 1))
    >>> rollout_kernel(0.5 * one, one[None], one, 0.0 * one, depth=2).tolist()
    [[1.0]]
    """
    check_systems(preconditioner, operators, right_hand_sides=right_hand_sides, initial=initial)
    if preconditioner.ndim != 2:
        raise ValueError(
            f"rollout_kernel takes one preconditioner of shape (size, size); got {preconditioner.shape}. The kernels "
            "of one preconditioner per task are blocks: map over tasks with jax.vmap, each as a batch of one."
        )
    return _rollout_kernel(preconditioner, operators, right_hand_sides, initial, checked_depth(depth))


@partial(jax.jit, static_argnums=4)
def _rollout_kernel(preconditioner, operators, right_hand_sides, initial, depth):
    product = partial(jnp.einsum, precision="highest")
    tasks, size = initial.shape
    identity = jnp.broadcast_to(jnp.eye(size, dtype=initial.dtype)[None], operators.shape)
    step = identity - product("ij,tjk->tik", preconditioner, operators)

    def layer(carry, _):
        state, power = carry
        residual = right_hand_sides - product("tij,tj->ti", operators, state)
        after = state + product("ij,tj->ti", preconditioner, residual)
        return (after, product("tij,tjk->tik", step, power)), (residual, power)

    _, (residuals, powers) = jax.lax.scan(layer, (initial, identity), length=depth)
    residuals, powers = residuals.swapaxes(0, 1), powers[::-1].swapaxes(0, 1)

    def rows(task):
        ours, power = task
        gram = product("lk,jmk->ljm", ours, residuals)
        mixed = product("ljm,lac->jmac", gram, power)
        return product("jmac,jmbc->ajb", mixed, powers)

    return jax.lax.map(rows, (residuals, powers)).reshape(tasks * size, tasks * size)

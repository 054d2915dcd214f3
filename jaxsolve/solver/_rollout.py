"""The decoder: a preconditioned Richardson iteration of fixed depth."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._arguments import checked_depth
from .._types import Scalar
from . import _scan
from ._methods import ADJOINTS, checked_method
from ._shapes import check_systems
from ._systems import NOTHING, Systems, product


def rollout(
    preconditioner: Float[Array, "size size"] | Float[Array, "tasks size size"],
    operators: Float[Array, "tasks size size"],
    right_hand_sides: Float[Array, "tasks size"],
    initial: Float[Array, "tasks size"],
    *,
    depth: int,
    method: str = "auto",
) -> Float[Array, "tasks size"]:
    """The last iterate `z_L` of the preconditioned Richardson iteration

        z_{l+1} = z_l + P (b − H z_l).

    Its error obeys `z_L − z* = (I − P H)^L (z_0 − z*)` for any `H` and `P`, symmetric or not. In single precision the
    products are taken in full single precision on every device, because the residual is a difference of nearly equal
    numbers.

    Reverse mode follows the exact adjoint: from the cotangent `λ_L` of the result,

        λ_l = λ_{l+1} − Hᵀ μ_l,   μ_l = Pᵀ λ_{l+1},
        grad_P = Σ λ_{l+1} r_lᵀ,  grad_H = −Σ μ_l z_lᵀ,  grad_b = Σ μ_l,  grad_{z_0} = λ_0,

    with residuals `r_l = b − H z_l` and sums over the steps `l < L`; for a shared `P` the sum runs over the tasks too.
    Only what is asked for is computed. The methods differ in cost, in what they keep for the way back, and by rounding
    errors, which in the last three are in proportion to the depth:

    - ``"auto"``: what [`choose_method`][] says for these shapes.
    - ``"scan"``: the steps as written, differentiated by JAX in any mode and to any order. Keeps `N K L` numbers.
    - ``"accumulate"``: the steps as written, and the recursion above. Keeps `N K L`.
    - ``"checkpoint"``: the same in segments, each of which runs twice. Keeps about `N K √L`.
    - ``"blocked"``: the matrices `I − H P` and `I − P H`, formed for a few tasks at a time, and one product per step.
      Keeps `N K L` up to depth 128, and at most `N K² + N K L / 64` beyond.
    - ``"panels"``: the same with eight steps per product. Keeps at most `N K² + N K L / 15`.
    - ``"doubling"``: the sums over `L` steps from those over `L / 2`. Keeps nothing.

    All but ``"scan"`` refuse forward mode, and with it ``jax.jvp``, ``jax.jacfwd`` and ``jax.hessian``. No method
    recovers earlier states from the last one, because `e_l = (I − P H)^{−1} e_{l+1}` magnifies rounding errors by as
    much as the iteration reduces the error. Where `I − P H` has a mode that grows until powers overflow, ``"panels"``
    and ``"doubling"`` give infinities or NaN even if the start does not contain that mode.

    Parameters
    ----------
    preconditioner
        `P`, shared by all tasks or one per task.
    operators, right_hand_sides
        `H` and `b`.
    initial
        `z_0`.
    depth
        `L`, static; at depth 0 the result is ``initial``, and the gradient of ``initial`` alone is not zero.
    method
        One of the above, static.

    Raises
    ------
    ValueError
        For a depth that is negative or not an integer, shapes that do not fit, dtypes that are not one floating dtype,
        and a method that does not exist.

    >>> import jax.numpy as jnp
    >>> rollout(jnp.eye(1), 0.5 * jnp.ones((1, 1, 1)), jnp.ones((1, 1)), jnp.zeros((1, 1)), depth=2).tolist()
    [[1.5]]
    """
    check_systems(preconditioner, operators, right_hand_sides=right_hand_sides, initial=initial)
    depth = checked_depth(depth)
    systems = Systems(preconditioner, operators, right_hand_sides, initial)
    method = checked_method(method, systems, depth)
    return _rolled(systems, depth, method) if depth and initial.size else initial


def trajectory(
    preconditioner: Float[Array, "size size"] | Float[Array, "tasks size size"],
    operators: Float[Array, "tasks size size"],
    right_hand_sides: Float[Array, "tasks size"],
    initial: Float[Array, "tasks size"],
    *,
    depth: int,
) -> Float[Array, "iterates tasks size"]:
    """All `L + 1` iterates `z_0, ..., z_L` of [`rollout`][], which describes the parameters and what is raised.

    The steps are run as they are written, and differentiated by JAX in any mode.
    """
    check_systems(preconditioner, operators, right_hand_sides=right_hand_sides, initial=initial)
    return _iterates(Systems(preconditioner, operators, right_hand_sides, initial), checked_depth(depth))


def apply_operators(
    operators: Float[Array, "tasks size size"], states: Float[Array, "tasks size"]
) -> Float[Array, "tasks size"]:
    """`H_i z_i` for every task, in full precision: right-hand sides from solutions.

    Raises
    ------
    ValueError
        Where the shapes do not fit.

    >>> import jax.numpy as jnp
    >>> apply_operators(2 * jnp.eye(2)[None], jnp.ones((1, 2))).tolist()
    [[2.0, 2.0]]
    """
    if operators.ndim != 3 or operators.shape[1] != operators.shape[2] or states.shape != operators.shape[:2]:
        raise ValueError(
            f"apply_operators takes operators (tasks, size, size) and states (tasks, size); got {operators.shape} and "
            f"{states.shape}."
        )
    return product("tij,tj->ti", operators, states)


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


@partial(jax.jit, static_argnums=(1, 2))
def _rolled(systems, depth, method):
    return _scan.final(systems, depth) if method == "scan" else _with_adjoint(systems, depth, method)


_iterates = jax.jit(_scan.iterates, static_argnums=1)


class _Kept(eqx.Module):
    systems: Systems
    saved: Any
    needed: Systems = eqx.field(static=True)


@partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def _with_adjoint(systems, depth, method):
    return ADJOINTS[method].forward(systems, depth, NOTHING)[0]


def _forward(systems, depth, method):
    needed = Systems(*(array.perturbed for array in systems))
    systems = Systems(*(array.value for array in systems))
    final, saved = ADJOINTS[method].forward(systems, depth, needed)
    return final, _Kept(systems, saved, needed)


def _backward(depth, method, kept, cotangent):
    return (ADJOINTS[method].backward(kept.systems, kept.saved, cotangent, depth, kept.needed),)


_with_adjoint.defvjp(_forward, _backward, symbolic_zeros=True)

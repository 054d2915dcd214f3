"""Doubling: the sums over `L` steps from those over `L / 2`, in about `log2 L` products of matrices.

A stretch of `n` steps is described by matrices that do not depend on where it begins (see `_powers` for `M` and `C`):

    X = Σ_{l<n} (Mᵀ)^{n−1−l} g r_0ᵀ C^l,   Y = Σ_{l<n} (Mᵀ)^{n−1−l} g s_lᵀ,   y = Σ_{l<n} (Mᵀ)^l g,   s = s_n,

with `s_l = Σ_{k<l} r_k` and `r_l` the residual. At `n = L` and the cotangent `g` of the last state, `X` is `grad_P` and
`Y`, `y` give the others as in `_panels`, from `W = Y`. Two stretches, `a` before `b`, compose by

    M = M_a M_b,   C = C_a C_b,   X = M_bᵀ X_a + X_b C_a,   y = M_bᵀ y_a + y_b,   s = s_a + C_aᵀ s_b,
    Y = M_bᵀ Y_a + Y_b C_a + y_b s_aᵀ.

The method starts from stretches of up to `K` steps, which are thin products, and keeps nothing for the way back.
`X` is the (1, 2) block of a power of `[[Mᵀ, g r_0ᵀ], [0, C]]`, a Fréchet derivative of the matrix power.
"""

from functools import partial, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ._powers import advance, error_matrices, powers, residual_matrices, spread, sums_before
from ._systems import Systems, operator_cotangents, precondition, precondition_transposed, product, residuals


class _Stretch(NamedTuple):
    """The matrices and vectors of the head of this file; None where no cotangent needs them."""

    adjoint: Any
    residual: Any
    preconditioner: Any
    operators: Any
    adjoints: Any
    sums: Any


def forward(systems: Systems, depth: int, needed: Systems) -> tuple[Any, Any]:
    """The last state; nothing is kept."""
    del needed

    def double(state, bit):
        total, stretch, matrices = state
        total = jnp.where(bit, stretch + advance(total, matrices), total)
        return (total, stretch + advance(stretch, matrices), product("tij,tjk->tik", matrices, matrices)), None

    first = residuals(systems, systems.initial)
    start = (jnp.zeros_like(first), first, residual_matrices(systems))
    places = _width(systems, depth).bit_length() - 1
    bits = [bool(depth >> place & 1) for place in range(places)]
    (total, stretch, matrices), _ = jax.lax.scan(double, start, jnp.asarray(bits, bool))
    total, _ = jax.lax.scan(lambda total, _: (stretch + advance(total, matrices), None), total, length=depth >> places)
    return systems.initial + precondition(systems.preconditioner, total), None


def backward(systems: Systems, saved: Any, cotangent: Any, depth: int, needed: Systems) -> Systems:
    """The cotangents that are needed, and None for the others."""
    del saved
    total = _all_steps(systems, cotangent, depth, needed)
    preconditioner = operators = right_hand_sides = None
    if needed.preconditioner:
        shared = systems.preconditioner.ndim == 2
        preconditioner = total.preconditioner.sum(axis=0) if shared else total.preconditioner
    if needed.operators:
        operators = operator_cotangents(systems, total.adjoints, total.operators)
    if needed.right_hand_sides:
        right_hand_sides = precondition_transposed(systems.preconditioner, total.adjoints)
    return Systems(preconditioner, operators, right_hand_sides, _applied(total.adjoint, cotangent))


def _all_steps(systems, cotangent, depth, needed):
    width = _first_width(systems, depth)
    adjoint = powers(jnp.swapaxes(error_matrices(systems), 1, 2), width)
    residual = powers(residual_matrices(systems), width)
    columns = cotangent[:, :, None]
    for matrices in adjoint[:-1]:
        columns = jnp.concatenate([product("tij,tjm->tim", matrices, columns), columns], axis=2)
    rows = spread(residuals(systems, systems.initial), residual)
    sums = sums_before(rows)

    def short(steps):
        last = columns[:, :, width - steps :]
        return _Stretch(
            adjoint=_power(adjoint, steps),
            residual=_power(residual, steps) if needed.preconditioner or needed.operators else None,
            preconditioner=product("tim,tmj->tij", last, rows[:, :steps]) if needed.preconditioner else None,
            operators=product("tim,tmj->tij", last, sums[:, :steps]) if needed.operators else None,
            adjoints=last.sum(axis=2) if needed.operators or needed.right_hand_sides else None,
            sums=rows[:, :steps].sum(axis=1) if needed.operators else None,
        )

    count, rest = divmod(depth, width)
    total = _repeated(short(width), count)
    return _composed(short(rest), total) if rest else total


def _repeated(unit, count):
    def step(total, bit):
        total = _composed(total, total)
        return jax.lax.cond(bit, lambda: _composed(total, unit), lambda: total), None

    bits = [bool(count >> place & 1) for place in reversed(range(count.bit_length() - 1))]
    return jax.lax.scan(step, unit, jnp.asarray(bits, bool))[0]


def _composed(first, second):
    def both(before, after):
        return product("tij,tjk->tik", second.adjoint, before) + product("tij,tjk->tik", after, first.residual)

    residual = preconditioner = operators = adjoints = sums = None
    if first.residual is not None:
        residual = product("tij,tjk->tik", first.residual, second.residual)
    if first.preconditioner is not None:
        preconditioner = both(first.preconditioner, second.preconditioner)
    if first.adjoints is not None:
        adjoints = _applied(second.adjoint, first.adjoints) + second.adjoints
    if first.operators is not None:
        operators = both(first.operators, second.operators) + product("ti,tj->tij", second.adjoints, first.sums)
        sums = first.sums + advance(second.sums, first.residual)
    adjoint = product("tij,tjk->tik", second.adjoint, first.adjoint)
    return _Stretch(adjoint, residual, preconditioner, operators, adjoints, sums)


def _power(ladder, steps):
    """The power of that exponent, at most the largest of the ladder."""
    first, *others = (matrices for place, matrices in enumerate(ladder) if steps >> place & 1)
    return reduce(partial(product, "tij,tjk->tik"), others, first)


def _applied(matrices, vectors):
    return product("tij,tj->ti", matrices, vectors)


def _first_width(systems, depth):
    """Steps of the first stretch: the largest power of two up to the size of a task."""
    return 2 ** (min(systems.initial.shape[1], depth).bit_length() - 1)


def _width(systems, depth):
    """Steps after which products with vectors are cheaper than another square of the matrices."""
    return 2 ** ((depth // systems.initial.shape[1]).bit_length() - 1) if depth >= systems.initial.shape[1] else 1

"""Step form: the steps as they are written, and the adjoint recursion that accumulates while it runs back.

    λ_l = λ_{l+1} − Hᵀ μ_l,   μ_l = Pᵀ λ_{l+1},
    grad_P = Σ λ_{l+1} r_lᵀ,  grad_H = −Σ μ_l z_lᵀ,  grad_b = Σ μ_l,  grad_{z_0} = λ_0.

All residuals are kept (`N K L` numbers), and all states where the operators need a cotangent.
"""

from typing import Any

import jax
import jax.numpy as jnp

from ._systems import Systems, axes, precondition, precondition_transposed, product, residuals


def forward(systems: Systems, depth: int, needed: Systems) -> tuple[Any, Any]:
    """The last state, and what ``backward`` reads."""

    def step(state, _):
        residual = residuals(systems, state)
        kept = (residual if needed.preconditioner else None, state if needed.operators else None)
        return state + precondition(systems.preconditioner, residual), kept

    return jax.lax.scan(step, systems.initial, length=depth)


def backward(systems: Systems, saved: Any, cotangent: Any, depth: int, needed: Systems) -> Systems:
    """The cotangents that are needed, and None for the others."""
    preconditioner, operators = systems.preconditioner, systems.operators

    def step(totals, kept):
        residual, state = kept
        adjoint = totals.initial
        pulled = precondition_transposed(preconditioner, adjoint)
        totals = totals._replace(initial=adjoint - product("tij,ti->tj", operators, pulled))
        if needed.preconditioner:
            change = product(f"ti,tj->{axes(preconditioner)}", adjoint, residual)
            totals = totals._replace(preconditioner=totals.preconditioner + change)
        if needed.operators:
            totals = totals._replace(operators=totals.operators - product("ti,tj->tij", pulled, state))
        if needed.right_hand_sides:
            totals = totals._replace(right_hand_sides=totals.right_hand_sides + pulled)
        return totals, None

    start = Systems(*(jnp.zeros_like(array) if wanted else None for array, wanted in zip(systems, needed, strict=True)))
    totals, _ = jax.lax.scan(step, start._replace(initial=cotangent), saved, length=depth, reverse=True)
    return totals

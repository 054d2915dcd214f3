"""The arrays of an iteration, and its products in full precision."""

from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp

product = partial(jnp.einsum, precision="highest")


class Systems(NamedTuple):
    """One entry per differentiable argument: arrays, their cotangents, or whether a cotangent is needed."""

    preconditioner: Any
    operators: Any
    right_hand_sides: Any
    initial: Any


NOTHING = Systems(False, False, False, False)


def residuals(systems: Systems, states: Any) -> Any:
    """`b − H z`."""
    return systems.right_hand_sides - product("tij,tj->ti", systems.operators, states)


def precondition(preconditioner: Any, vectors: Any) -> Any:
    """`P v` for one vector per task."""
    return product(f"{axes(preconditioner)},tj->ti", preconditioner, vectors)


def precondition_transposed(preconditioner: Any, vectors: Any) -> Any:
    """`Pᵀ v` for one vector per task."""
    return product(f"{axes(preconditioner)},ti->tj", preconditioner, vectors)


def operator_cotangents(systems: Systems, adjoints: Any, products: Any) -> Any:
    """`−Pᵀ (y z_0ᵀ + W Pᵀ)` from `y = Σ λ_{l+1}` and `W = Σ λ_{l+1} s_lᵀ`, where `z_l = z_0 + P s_l`."""
    subscripts = axes(systems.preconditioner)
    by_states = product("ti,tj->tij", adjoints, systems.initial) + product(
        f"tij,{subscripts.replace('i', 'k')}->tik", products, systems.preconditioner
    )
    return -product(f"{subscripts},tik->tjk", systems.preconditioner, by_states)


def axes(preconditioner: Any) -> str:
    """Subscripts of a preconditioner that is shared, or of one per task."""
    return "ij" if preconditioner.ndim == 2 else "tij"

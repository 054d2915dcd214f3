"""The steps as they are written."""

from typing import Any

import jax
import jax.numpy as jnp

from ._systems import Systems, precondition, residuals


def final(systems: Systems, depth: int) -> Any:
    """`z_L`."""
    return jax.lax.scan(lambda state, _: (_after(systems, state), None), systems.initial, length=depth)[0]


def iterates(systems: Systems, depth: int) -> Any:
    """`z_0, ..., z_L`."""
    last, before = jax.lax.scan(lambda state, _: (_after(systems, state), state), systems.initial, length=depth)
    return jnp.concatenate([before, last[None]])


def _after(systems, state):
    return state + precondition(systems.preconditioner, residuals(systems, state))

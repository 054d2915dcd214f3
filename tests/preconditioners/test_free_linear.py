"""The free matrix."""

import jax.numpy as jnp
import pytest

from jaxsolve.preconditioners import FreeLinear


def test_starts_at_the_skip():
    preconditioner = FreeLinear.initialise(3, skip=0.25, dtype=jnp.float32)
    assert preconditioner.dtype == jnp.float32
    assert preconditioner.entries.tolist() == [[0.25, 0, 0], [0, 0.25, 0], [0, 0, 0.25]]


def test_bad_input_is_refused(unchecked):
    with pytest.raises(ValueError, match=r"square matrix; got shape \(2, 3\)"):
        FreeLinear(jnp.ones((2, 3)))
    with pytest.raises(ValueError, match="size=0"):
        FreeLinear.initialise(0)

"""Draws: what draw i is depends on the key and on i alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve._montecarlo import draws


def one(*, key):
    return {"x": jax.random.normal(key, (3,))}


def test_draw_i_uses_the_folded_key():
    key = jax.random.key(4)
    stacked = draws(one, key, 21)["x"]
    for i in (0, 7, 20):
        assert jnp.array_equal(stacked[i], one(key=jax.random.fold_in(key, i))["x"])


@pytest.mark.parametrize("block", [1, 3, 8, 64])
def test_neither_the_block_nor_the_count_changes_a_draw(block):
    key = jax.random.key(4)
    expected = draws(one, key, 21)["x"]
    assert np.allclose(draws(one, key, 21, block=block)["x"], expected, rtol=1e-15, atol=0)
    assert np.array_equal(draws(one, key, 5, block=block)["x"], draws(one, key, 21, block=block)["x"][:5])


@pytest.mark.parametrize("arguments", [{"count": 0}, {"count": 3, "block": 0}])
def test_empty_runs_are_refused(arguments):
    with pytest.raises(ValueError, match="at least 1"):
        draws(one, jax.random.key(0), **arguments)


def test_an_untyped_key_is_refused():
    with pytest.raises(ValueError, match=r"jax\.random\.key"):
        draws(one, jnp.zeros(2, jnp.uint32), 3)  # pyright: ignore

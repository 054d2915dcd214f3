"""Draws of a pure function over keys."""

from collections.abc import Callable
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from .._types import Key

Output = TypeVar("Output", bound=PyTree)


def draws(function: Callable[..., Output], key: Key, count: int, *, block: int = 8) -> Output:
    """Stack ``count`` independent draws of ``function(key=...)`` along a new leading axis.

    Draw ``i`` uses ``jax.random.fold_in(key, i)``, so it does not depend on how many draws are asked for. Draws are
    computed in blocks of ``block``: vectorised inside a block, one block after the other, which keeps the working
    set in cache. The last block is padded and the padding dropped.

    Parameters
    ----------
    function
        A pure function of one keyword argument ``key``. A bound method of an Equinox module is a pytree: its arrays
        are arguments of the compiled loop, not constants, and another instance of the same shapes does not compile
        again.
    key
        A typed key.
    count
        How many draws, at least one.
    block
        Draws per block.

    Raises
    ------
    ValueError
        For a count or block below one, and for a key that is not typed.

    >>> import jax
    >>> draws(lambda key: jax.random.normal(key, (2,)), jax.random.key(0), 5).shape
    (5, 2)
    """
    if count < 1 or block < 1:
        raise ValueError(f"draws needs a count and a block of at least 1; got count={count}, block={block}.")
    check_key("draws", key)
    return _stacked_draws(function, key, count, min(block, count))


def check_key(name: str, key: Key) -> None:
    """Refuse anything but one typed key.

    Raises
    ------
    ValueError
        For an untyped key, for several keys, and for what is no key at all.
    """
    dtype, shape = getattr(key, "dtype", None), getattr(key, "shape", None)
    if dtype is None or not jnp.issubdtype(dtype, jax.dtypes.prng_key) or shape != ():
        got = type(key).__name__ if dtype is None else f"dtype {dtype} and shape {shape}"
        raise ValueError(f"{name} needs one typed key; got {got}. Make one with jax.random.key.")


@eqx.filter_jit
def _stacked_draws(function, key, count: int, block: int):
    padded = -(-count // block) * block
    keys = jax.vmap(lambda index: jax.random.fold_in(key, index))(jnp.arange(padded, dtype=jnp.uint32))
    outputs = jax.lax.map(lambda one: function(key=one), keys, batch_size=block)
    return jax.tree.map(lambda leaf: leaf[:count], outputs)

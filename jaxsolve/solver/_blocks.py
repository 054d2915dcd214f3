"""Tasks in blocks, so that what a method builds for a task stays in fast memory and its size does not grow with `N`."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ._systems import Systems

CACHE = 2**17
"""Bytes of one matrix per task that a block may take on a CPU: with a second one and vectors, a level-two cache."""

MEMORY = 2**27
"""The same on other devices, which want all tasks at once."""


class Method(NamedTuple):
    """``forward(systems, depth, needed)`` gives ``(final, saved)``; ``backward(systems, saved, cotangent, depth,
    needed)`` gives the cotangents, None where they are not needed."""

    forward: Callable[..., tuple[Any, Any]]
    backward: Callable[..., Systems]


def tasks_per_block(tasks: int, size: int, itemsize: int, platform: str) -> int:
    """How many tasks share a block; the blocks are as equal as the number of tasks allows.

    >>> tasks_per_block(100, 64, 8, "cpu")
    4
    >>> tasks_per_block(100, 64, 8, "gpu")
    100
    """
    largest = max(1, (CACHE if platform == "cpu" else MEMORY) // (size * size * itemsize))
    blocks = max(1, -(-tasks // largest))
    return -(-tasks // blocks)


def in_blocks(method: Method) -> Method:
    """The method on one block of tasks after the other."""

    def forward(systems, depth, needed):
        split = _splitter(systems)
        if split is None:
            return method.forward(systems, depth, needed)
        final, saved = jax.lax.map(
            lambda block: method.forward(_join(systems, block), depth, needed), _blocks(systems, split)
        )
        return _whole(final, systems), saved

    def backward(systems, saved, cotangent, depth, needed):
        split = _splitter(systems)
        if split is None:
            return method.backward(systems, saved, cotangent, depth, needed)
        shared = systems.preconditioner.ndim == 2 and needed.preconditioner

        def body(total, inputs):
            block, kept, adjoint = inputs
            found = method.backward(_join(systems, block), kept, adjoint, depth, needed)
            if shared:
                return total + found.preconditioner, found._replace(preconditioner=None)
            return total, found

        start = jnp.zeros_like(systems.preconditioner) if shared else None
        total, found = jax.lax.scan(body, start, (_blocks(systems, split), saved, split(cotangent)))
        found = jax.tree.map(lambda array: _whole(array, systems), found)
        return found._replace(preconditioner=total) if shared else found

    return Method(forward, backward)


def _splitter(systems):
    tasks, size = systems.initial.shape
    per_block = tasks_per_block(tasks, size, systems.initial.dtype.itemsize, jax.default_backend())
    blocks = -(-tasks // per_block)

    def split(array):
        padded = jnp.pad(array, [(0, blocks * per_block - tasks), *[(0, 0)] * (array.ndim - 1)])
        return padded.reshape(blocks, per_block, *array.shape[1:])

    return None if blocks == 1 else split


def _blocks(systems, split):
    shared = systems.preconditioner.ndim == 2
    return Systems(None if shared else split(systems.preconditioner), *map(split, systems[1:]))


def _join(systems, block):
    return block if block.preconditioner is not None else block._replace(preconditioner=systems.preconditioner)


def _whole(array, systems):
    return array.reshape(-1, *array.shape[2:])[: systems.initial.shape[0]]

"""The compiled part: blocks of draws on the devices of a mesh, each reduced to its statistics."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from .._types import Key


@dataclass(frozen=True)
class Outline:
    """What one draw returns: a tree of arrays, handled as one vector.

    ``dtype`` is the widest floating dtype among the arrays, or the default one where all are integers or truth
    values.
    """

    tree: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype, ...]
    dtype: np.dtype

    @property
    def entries(self) -> int:
        """How many numbers a draw has."""
        return sum(map(math.prod, self.shapes))

    def vector(self, output) -> jax.Array:
        """The arrays of one draw, one after the other.

        Raises
        ------
        ValueError
            Where they are others than those of the first trace.
        """
        if (found := _outlined(output)) != self:
            raise ValueError(
                f"A draw returns the same arrays every time; got {self} and then {found}. The function of the draws "
                "has to be pure: no counters, no lists that grow."
            )
        return jnp.concatenate([jnp.ravel(leaf).astype(self.dtype) for leaf in jax.tree.leaves(output)])

    def restored(self, values: np.ndarray, *, cast: bool = False):
        """Arrays of the shapes of a draw, from entries along the last axis; axes in front stay in front."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])[:-1]
        pieces = np.split(values, ends, axis=-1)
        leaves = [piece.reshape((*values.shape[:-1], *shape)) for piece, shape in zip(pieces, self.shapes, strict=True)]
        if cast:
            leaves = [leaf.astype(dtype) for leaf, dtype in zip(leaves, self.dtypes, strict=True)]
        return jax.tree.unflatten(self.tree, leaves)


def outline(function: Callable[..., Any], key: Key) -> Outline:
    """Trace one draw and describe what it returns.

    Raises
    ------
    ValueError
        Where an output is not an array of real numbers, where there is none, and where shapes depend on values.
    """
    try:
        return _outlined(eqx.filter_eval_shape(lambda inner, key: inner(key=key), function, key))
    except (jax.errors.ConcretizationTypeError, jax.errors.NonConcreteBooleanIndexError) as error:
        raise ValueError(
            "The shapes and the branches of a draw may not depend on drawn values; use jnp.where or jax.lax.cond. "
            f"JAX says: {str(error).splitlines()[0]}"
        ) from error


def _outlined(output) -> Outline:
    leaves, tree = jax.tree.flatten(output)
    for leaf in leaves:
        dtype = getattr(leaf, "dtype", None)
        if dtype is None or not _is_real(dtype):
            got = repr(leaf) if dtype is None else f"an array of {dtype}"
            raise ValueError(f"A draw returns arrays of real numbers; got {got}. Return complex numbers as two arrays.")
    if not sum(leaf.size for leaf in leaves):
        raise ValueError("A draw returns at least one number; got none.")
    floating = [leaf.dtype for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating)]
    dtype = max(floating, key=lambda dtype: jnp.finfo(dtype).bits) if floating else jnp.zeros(()).dtype
    return Outline(tree, tuple(leaf.shape for leaf in leaves), tuple(leaf.dtype for leaf in leaves), dtype)


def _is_real(dtype) -> bool:
    return any(jnp.issubdtype(dtype, kind) for kind in (jnp.floating, jnp.integer, jnp.bool_))


def check_platform(platform: str, dtype: np.dtype) -> None:
    """Refuse double precision where the device has none.

    Raises
    ------
    ValueError
        For float64 on a TPU.
    """
    if platform == "tpu" and dtype == np.float64:
        raise ValueError("A TPU has no float64; got draws in float64. Use float32 there, or a mesh of CPU devices.")


@dataclass(frozen=True)
class Plan:
    """Everything static: the block, what is gathered, and where it runs."""

    outline: Outline
    block: int
    capacity: int
    covariance: bool
    keep: bool
    mesh: Mesh
    key_impl: Any

    @property
    def devices(self) -> int:
        """How many devices share a call."""
        return self.mesh.size

    @property
    def several_processes(self) -> bool:
        """Whether the devices belong to more than one process."""
        return len({device.process_index for device in self.mesh.devices.flat}) > 1

    @property
    def leads(self) -> bool:
        """Whether this process is the one that writes and tells."""
        return self.mesh.devices.flat[0].process_index == jax.process_index()

    @property
    def bytes_per_block(self) -> int:
        """What a block leaves on its device."""
        entries, size = self.outline.entries, self.outline.dtype.itemsize
        products = entries**2 if self.covariance else 0
        kept = self.block * entries if self.keep else 0
        return (2 * entries + products + kept) * size + self.block

    @property
    def bytes_on_device(self) -> int:
        """What the blocks of a call leave there."""
        return self.capacity * self.bytes_per_block


class BlockRows(NamedTuple):
    """What is kept of every block; axis 0 runs over blocks."""

    failed: Any
    mean: Any
    square: Any
    product: Any
    values: Any


class Range(NamedTuple):
    """What is gathered over all blocks of a device and merges exactly: extremes, and counts between edges."""

    minimum: Any
    maximum: Any
    counts: Any


@partial(jax.jit, static_argnames=("static", "plan"))
def chunk(arrays, key_data, edges, start, blocks, count, *, static, plan: Plan) -> tuple[BlockRows, Range]:
    """Blocks ``start`` to ``start + blocks``, in equal runs on the devices, of which the last may get fewer.

    The number of blocks is an argument: the same program serves every chunk up to the capacity. The rows of a device
    beyond its blocks hold zeros.

    Parameters
    ----------
    arrays, static
        The function of the draws, taken apart.
    key_data, edges
        Data of the key; edges of the histogram, none for no histogram.
    start, blocks, count
        First block, number of blocks, and number of draws of the whole run.
    plan
        See [`Plan`][].
    """
    leaves, tree = static
    axes = plan.mesh.axis_names

    def local(arrays, key_data, edges, start, blocks, count):
        function = eqx.combine(arrays, jax.tree.unflatten(tree, leaves))
        key = jax.random.wrap_key_data(key_data, impl=plan.key_impl)
        each = (blocks + plan.devices - 1) // plan.devices
        skipped = jax.lax.axis_index(axes) * each

        def step(number, carry):
            rows, gathered = carry
            first = (start + skipped + number).astype(jnp.uint32) * plan.block
            indices = first + jnp.arange(plan.block, dtype=jnp.uint32)
            keys = jax.vmap(lambda index: jax.random.fold_in(key, index))(indices)
            values = jax.vmap(lambda one: plan.outline.vector(function(key=one)))(keys)
            found, gathered = _reduced(values, indices < count, edges, gathered, plan)
            put = partial(jax.lax.dynamic_update_index_in_dim, index=number, axis=0)
            return jax.tree.map(put, rows, found), gathered

        mine = jnp.clip(blocks - skipped, 0, each)
        rows, gathered = jax.lax.fori_loop(0, mine, step, _empty(edges, plan))
        return rows, jax.tree.map(lambda field: field[None], gathered)

    along = PartitionSpec(axes)
    shared = jax.shard_map(local, mesh=plan.mesh, in_specs=PartitionSpec(), out_specs=along, check_vma=False)
    return shared(arrays, key_data, edges, start, blocks, count)


def _empty(edges, plan: Plan) -> tuple[BlockRows, Range]:
    entries, dtype, rows = plan.outline.entries, plan.outline.dtype, plan.capacity
    return (
        BlockRows(
            jnp.zeros((rows, plan.block), bool),
            jnp.zeros((rows, entries), dtype),
            jnp.zeros((rows, entries), dtype),
            jnp.zeros((rows, entries, entries), dtype) if plan.covariance else None,
            jnp.zeros((rows, plan.block, entries), dtype) if plan.keep else None,
        ),
        Range(
            jnp.full(entries, jnp.inf, dtype),
            jnp.full(entries, -jnp.inf, dtype),
            jnp.zeros((entries, edges.size + 1), jnp.int32) if edges.size else None,
        ),
    )


def _reduced(values, wanted, edges, gathered: Range, plan: Plan) -> tuple[BlockRows, Range]:
    """Statistics of one block over its finite draws, and the exact ones added to those of the blocks before."""
    finite = jnp.all(jnp.isfinite(values), axis=1)
    used = wanted & finite
    column = used[:, None]
    number = jnp.maximum(jnp.sum(used), 1).astype(values.dtype)
    mean = jnp.sum(jnp.where(column, values, 0), axis=0) / number
    centred = jnp.where(column, values - mean[None], 0)
    product = jnp.matmul(centred.T, centred, precision="highest") if plan.covariance else None
    minimum = jnp.minimum(gathered.minimum, jnp.min(jnp.where(column, values, jnp.inf), axis=0))
    maximum = jnp.maximum(gathered.maximum, jnp.max(jnp.where(column, values, -jnp.inf), axis=0))
    counts = gathered.counts
    if counts is not None:
        places = jnp.searchsorted(edges, values, side="right")
        entries = jnp.broadcast_to(jnp.arange(values.shape[1])[None], places.shape)
        counts = counts.at[entries, places].add(jnp.broadcast_to(column, places.shape).astype(jnp.int32))
    rows = BlockRows(wanted & ~finite, mean, jnp.sum(centred**2, axis=0), product, values if plan.keep else None)
    return rows, Range(minimum, maximum, counts)


class Program:
    """The chunk program of one function, compiled for one plan, with its arguments on the devices.

    Parameters
    ----------
    function, key, edges
        What is drawn, the key of the run, and the edges of the histogram in the dtype of the draws.
    plan
        See [`Plan`][].

    Raises
    ------
    ValueError
        Where the function holds something that is neither an array nor hashable.
    """

    def __init__(self, function: Callable[..., Any], key: Key, edges: np.ndarray, plan: Plan):
        arrays, static = eqx.partition(function, eqx.is_array)
        leaves, tree = jax.tree.flatten(static)
        self._static = (tuple(leaves), tree)
        try:
            hash(self._static)
        except TypeError as error:
            raise ValueError(
                f"What the function of the draws holds besides arrays has to be hashable; got {leaves}."
            ) from error
        self._plan = plan
        arguments = (arrays, np.asarray(jax.random.key_data(key)), edges)
        self._arguments = jax.device_put(jax.tree.map(self._host, arguments), NamedSharding(plan.mesh, PartitionSpec()))
        numbers = (np.int32(0), np.int32(0), np.uint32(0))
        self._compiled = chunk.lower(*self._arguments, *numbers, static=self._static, plan=plan).compile()

    @property
    def working_bytes(self) -> int:
        """What the compiled program needs on each device while it runs, or 0 where XLA does not tell."""
        analysis = self._compiled.memory_analysis()
        return 0 if analysis is None else int(analysis.temp_size_in_bytes)

    def run(self, start: int, blocks: int, count: int) -> tuple[BlockRows, Range]:
        """The blocks in order, and what merges exactly, one row per device; on the host."""
        rows, gathered = self._gathered(
            self._compiled(*self._arguments, np.int32(start), np.int32(blocks), np.uint32(count))
        )
        capacity = self._plan.capacity
        each = -(-blocks // self._plan.devices)
        mine = [min(max(blocks - device * each, 0), each) for device in range(self._plan.devices)]
        pieces = [slice(device * capacity, device * capacity + found) for device, found in enumerate(mine)]
        return jax.tree.map(lambda field: np.concatenate([field[piece] for piece in pieces]), rows), gathered

    def agreed(self, number: int) -> int:
        """The number of the first process, in all of them."""
        if not self._plan.several_processes:
            return number
        from jax.experimental import multihost_utils

        return int(multihost_utils.broadcast_one_to_all(np.int32(number)))

    def _host(self, leaf):
        is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return np.asarray(leaf) if self._plan.several_processes and not is_key else leaf

    def _gathered(self, tree):
        if not self._plan.several_processes:
            return jax.tree.map(np.asarray, tree)
        from jax.experimental import multihost_utils

        return multihost_utils.process_allgather(tree, tiled=True)

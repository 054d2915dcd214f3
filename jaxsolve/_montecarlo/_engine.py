"""The run: chunks of blocks, driven from the host."""

import math
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Float

from .._results import RESULTS
from .._types import ArrayLike, Key
from ._checkpoint import Checkpoint, State, configuration
from ._draws import check_key
from ._ensemble import Ensemble
from ._program import Outline, Plan, Program, check_platform, outline

CALL_SECONDS = 0.5
"""How long a call of the compiled program aims to last: long against dispatch, short against patience."""

EARLIEST_DRAWS = 64
"""Fewer draws are never taken to have reached a standard error."""

SHARED_CAPACITY = 64
"""Chunks of up to this many blocks are run by one program, if it fits into the memory."""

MOST_DRAWS = 2**31

CHECKPOINT_SHARE = 0.05
"""Share of the time that writing checkpoints may take."""


def monte_carlo(
    function: Callable[..., Any],
    key: Key,
    count: int,
    *,
    block: int = 8,
    covariance: bool = False,
    edges: Float[ArrayLike, " edges"] | None = None,
    keep: bool = False,
    standard_error: float | None = None,
    mesh: Mesh | None = None,
    memory: int = 2**28,
    chunk: int | None = None,
    checkpoint: Path | str | None = None,
    checkpoint_seconds: float = 30.0,
    progress: bool = False,
    throw: bool = True,
) -> Ensemble:
    """Streaming statistics of ``count`` independent draws of ``function(key=...)``.

    Draw ``i`` uses ``jax.random.fold_in(key, i)``. Draws are computed in blocks of ``block``, vectorised inside a
    block, and each block is reduced on its device to mean and centred squares. These are merged on the host, in
    float64, as a binary tree over the numbers of the blocks (pairwise, `Chan, Golub and LeVeque, 1983`). Chunks,
    devices and processes group whole blocks only. So on one backend the result is the same to the last bit for
    every chunk size, number of devices and interruption; other blocks change it by rounding errors.

    Extremes and counts are exact. Rounding in the moments is that of two passes over a block, in the dtype of the
    draws, and grows with the logarithm of the number of blocks.

    Several processes take part after ``jax.distributed.initialize``: each of them calls this function with the same
    arguments, and each gets the result. The first writes the checkpoint, which all must be able to read.

    Parameters
    ----------
    function
        A pure function of one keyword argument ``key``, which returns a tree of arrays of real numbers. Arrays that it
        holds as a pytree are arguments of the compiled program: another instance of the same shapes does not compile
        again.
    key
        A typed key.
    count
        How many draws, at least one.
    block
        Draws per block. Together with the function and the key it fixes the result.
    covariance
        Gather the covariance between all entries of a draw; a block then leaves `entries²` numbers.
    edges
        Increasing edges between which the values of every entry are counted; see [`logarithmic_edges`][]. They are
        rounded to the dtype of the draws.
    keep
        Keep every draw, on the host and in the checkpoint.
    standard_error
        Stop where that of every entry is at most this. Looked at after `2^k` blocks only, and not before 64 draws. A
        rare event that has not been met yet has a variance of zero: give a ``count`` instead.
    mesh
        Devices that share the draws, along all axes of the mesh; all devices unless given.
    memory
        Bytes on each device, for the draws being computed and for what the blocks of a chunk leave; it bounds the
        chunk.
    chunk
        Blocks per device and call. Unless given, as many as take about half a second and fit into ``memory``.
    checkpoint
        A file that holds the state. If it exists the run goes on from it, also to a larger count or a smaller standard
        error.
    checkpoint_seconds
        Least time between two writings; also, they take at most a twentieth of the time.
    progress
        Announce memory and disk, then show a bar with the time left, on standard error.
    throw
        Raise where a draw is not finite. Otherwise such a draw is left out as a whole and counted in the result.

    Raises
    ------
    ValueError
        For counts below one, a key that is not typed, outputs that are not real arrays of constant shape, edges that
        do not increase, float64 on a TPU, a block that exceeds the memory, a full disk, a checkpoint of another run;
        and, with ``throw``, at the first chunk with a draw that is not finite. Whatever ``throw`` is, where no draw is
        finite.

    >>> import jax
    >>> found = monte_carlo(lambda key: jax.random.normal(key, (2,)), jax.random.key(0), 4096)
    >>> found.count, found.mean.shape, bool((abs(found.mean) < 5 * found.standard_error).all())
    (4096, (2,), True)
    """
    check_key("monte_carlo", key)
    if not 1 <= count <= MOST_DRAWS or block < 1 or (chunk is not None and chunk < 1):
        raise ValueError(
            f"monte_carlo needs a count from 1 to {MOST_DRAWS}, and a block and a chunk of at least 1; got "
            f"count={count}, block={block}, chunk={chunk}."
        )
    if standard_error is not None and not standard_error > 0:
        raise ValueError(f"A standard error to stop at is positive; got {standard_error}.")
    shape = outline(function, key)
    cells = _edges(edges, shape)
    mesh = Mesh(np.asarray(jax.devices()), ("draws",)) if mesh is None else mesh
    check_platform(mesh.devices.flat[0].platform, shape.dtype)
    blocks = -(-count // block)
    plan = Plan(shape, block, 1, covariance, keep, mesh, jax.random.key_impl(key))
    plan = replace(plan, capacity=_capacity(plan, blocks, memory, chunk))
    file, state = None, State()
    if checkpoint is not None:
        known = configuration(function, key, cells, plan)
        file = Checkpoint(Path(checkpoint), known, count=count, block=block, target=standard_error or 0.0)
        _check_disk(file.path, plan, count)
        state = file.load()
    program = Program(function, key, cells, plan)
    device_bytes = plan.bytes_on_device + program.working_bytes
    if device_bytes > memory:
        raise ValueError(
            f"A block of {block} draws of {shape.entries} numbers needs {_mebibytes(program.working_bytes)} MiB, and "
            f"{_mebibytes(plan.bytes_on_device)} MiB for what it leaves, on each device; memory allows "
            f"{_mebibytes(memory)} MiB. Raise it, or take a smaller block or chunk."
        )
    if state.blocks != program.agreed(state.blocks):
        raise ValueError("The processes read different checkpoints. Put the file where all of them can read it.")
    run = _Run(program, plan, file, count, blocks, standard_error or 0.0, chunk, checkpoint_seconds, throw)
    with _bar(progress, plan, program, count, state.blocks, file) as show:
        state = run.finished(state, show)
    made = min(state.blocks * block, count)
    if state.failed == made:
        raise ValueError(f"None of {made} draws is finite: nothing is left to average.")
    return Ensemble(made, made - state.failed, state.failed_draws, device_bytes, cells, plan, state)


class _Run:
    def __init__(self, program, plan, file, count, blocks, target, chunk, checkpoint_seconds, throw):
        self._program, self._plan, self._file = program, plan, file
        self._count, self._blocks, self._target = count, blocks, target
        self._seconds, self._throw = checkpoint_seconds, throw
        self._most = min(plan.capacity, chunk or plan.capacity) * plan.devices
        self._next = plan.devices if chunk is None else self._most

    def finished(self, state: State, show: Callable[[int], None]) -> State:
        loaded, saved, wait = state, time.monotonic(), self._seconds
        self._check(state)
        while not self._is_done(state):
            start = time.monotonic()
            try:
                rows, gathered = self._program.run(state.blocks, self._number(state), self._count)
            except KeyboardInterrupt:
                self._save(state)
                raise
            state = state.advanced(rows, gathered, self._plan, self._count)
            show(state.blocks)
            now = time.monotonic()
            if now - start < CALL_SECONDS / 2:
                self._next = min(2 * self._next, self._most)
            if now - saved > wait or (self._throw and state.failed):
                wait = max(self._seconds, self._save(state) / CHECKPOINT_SHARE)
                saved = time.monotonic()
            self._check(state)
        if state is not loaded:
            self._save(state)
        self._program.agreed(state.blocks)  # no process goes on before the file is there
        return state

    def _number(self, state: State) -> int:
        """Blocks of the next call: up to the end, or to the next power of two where that decides."""
        end = self._blocks
        if self._target:
            end = min(end, 1 << state.blocks.bit_length())
        return self._program.agreed(min(self._next, end - state.blocks))

    def _is_done(self, state: State) -> bool:
        if state.blocks >= self._blocks:
            return True
        power_of_two = state.blocks.bit_count() == 1
        if not self._target or not power_of_two or state.blocks * self._plan.block < EARLIEST_DRAWS:
            return False
        total = state.tree.total()
        finite = int(total.count[0])
        return finite > 1 and float(np.sqrt(total.square[0] / (finite - 1) / finite).max()) <= self._target

    def _save(self, state: State) -> float:
        start = time.monotonic()
        if self._file is not None and self._plan.leads:
            self._file.save(state)
        return time.monotonic() - start

    def _check(self, state: State) -> None:
        if self._throw and state.failed:
            made, named = min(state.blocks * self._plan.block, self._count), ", ".join(map(str, state.failed_draws))
            raise ValueError(
                f"{RESULTS[RESULTS.draw_not_finite]} Failed: {state.failed} of {made} draws, first {named}."
            )


def _edges(edges, shape: Outline) -> np.ndarray:
    cells = np.asarray([] if edges is None else edges).astype(shape.dtype)
    if edges is not None and (cells.ndim != 1 or not cells.size or not np.isfinite(cells).all()):
        raise ValueError(f"edges is one row of finite numbers, at least one; got shape {cells.shape}.")
    if not (np.diff(cells) > 0).all():
        raise ValueError(f"edges increase, also after rounding to {shape.dtype}, the dtype of the draws.")
    return cells


def _capacity(plan: Plan, blocks: int, memory: int, chunk: int | None) -> int:
    """Blocks per device and call at most: what half of the memory holds, and hardly more than there are.

    Small chunks share a program, and so do runs of similar length.
    """
    most = memory // 2 // plan.bytes_per_block
    if chunk is not None:
        most = max(chunk, min(most, SHARED_CAPACITY))
    needed = -(-blocks // plan.devices)
    return max(min(most, 1 << (needed - 1).bit_length()), 1)


def _kept_bytes(plan: Plan, count: int) -> int:
    """What the statistics need on the host and in a checkpoint, one group per level of the tree included."""
    entries = plan.outline.entries
    levels = math.ceil(math.log2(count / plan.block + 1)) + 1
    moments = 8 * levels * (2 * entries + (entries**2 if plan.covariance else 0))
    return moments + (count * entries * plan.outline.dtype.itemsize if plan.keep else 0)


def _check_disk(path: Path, plan: Plan, count: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    needed, free = 2 * _kept_bytes(plan, count), shutil.disk_usage(path.parent).free
    if needed > free:
        raise ValueError(
            f"The checkpoint may need {_mebibytes(needed)} MiB, the old one and the new; {path.parent} has "
            f"{_mebibytes(free)} MiB free. Give another path, or keep less."
        )


def _mebibytes(number: int) -> str:
    return f"{number / 2**20:.3g}"


def _announcement(plan: Plan, program: Program, count: int, file: Checkpoint | None) -> str:
    device = plan.mesh.devices.flat[0]
    kept = _kept_bytes(plan, count)
    host = _mebibytes(kept + plan.devices * plan.bytes_on_device)
    disk = "no checkpoint" if file is None else f"{_mebibytes(kept)} MiB in {file.path}"
    return (
        f"{count} draws of {plan.outline.entries} numbers in blocks of {plan.block}, on {plan.devices} "
        f"{device.platform} device{'s' if plan.devices > 1 else ''}: at most "
        f"{_mebibytes(plan.bytes_on_device + program.working_bytes)} MiB on each, {host} MiB on the host, {disk}"
    )


@contextmanager
def _bar(
    progress: bool, plan: Plan, program: Program, count: int, blocks: int, file: Checkpoint | None
) -> Iterator[Callable[[int], None]]:
    if not progress or not plan.leads:
        yield lambda blocks: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    console.print(_announcement(plan, program, count, file), highlight=False)
    columns = (TextColumn("draws"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("draws", total=count, completed=blocks * plan.block)
        yield lambda blocks: bar.update(task, completed=min(blocks * plan.block, count))

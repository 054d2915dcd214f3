"""The state of a run: how far it has come, and the file that holds it."""

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from .._files import atomic_write
from .._types import Key
from ._merge import Moments, Tree
from ._program import BlockRows, Plan, Range

SCHEMA = 1
FAILURES_NAMED = 16
"""How many draws that are not finite are named."""


@dataclass(frozen=True)
class State:
    """What the first ``blocks`` blocks have given."""

    blocks: int = 0
    tree: Tree = field(default_factory=Tree)
    range: Range | None = None
    values: tuple[np.ndarray, ...] = ()
    failed: int = 0
    failed_draws: tuple[int, ...] = ()

    def advanced(self, rows: BlockRows, gathered: Range, plan: Plan, count: int) -> "State":
        """The state after further blocks."""
        number, block = rows.failed.shape
        indices = np.arange(self.blocks * block, (self.blocks + number) * block).reshape(number, block)
        used = ((indices < count) & ~rows.failed).sum(axis=1)
        mean, square, product = jax.tree.map(lambda array: array.astype(np.float64), rows[1:4])
        failures = indices[rows.failed]
        values = self.values
        if plan.keep:
            values += (rows.values.reshape(number * block, -1)[: count - self.blocks * block],)
        return State(
            self.blocks + number,
            self.tree.with_blocks(Moments(used, mean, square, product)),
            _united(self.range, gathered),
            values,
            self.failed + len(failures),
            (self.failed_draws + tuple(map(int, failures)))[:FAILURES_NAMED],
        )


def _united(before: Range | None, gathered: Range) -> Range:
    minimum, maximum = gathered.minimum.min(axis=0), gathered.maximum.max(axis=0)
    counts = None if gathered.counts is None else gathered.counts.sum(axis=0, dtype=np.int64)
    if before is not None:
        minimum, maximum = np.minimum(before.minimum, minimum), np.maximum(before.maximum, maximum)
        counts = None if counts is None else before.counts + counts
    return Range(minimum, maximum, counts)


def configuration(function: Callable[..., Any], key: Key, edges: np.ndarray, plan: Plan) -> dict[str, str]:
    """What the numbers of a run depend on, besides how many draws there are. Values are short texts.

    The function is told by a digest of the program that JAX traces from it and of the arrays that it holds.
    """
    arrays, static = eqx.partition(function, eqx.is_array)
    program = jax.make_jaxpr(lambda arrays, key: jax.tree.leaves(eqx.combine(arrays, static)(key=key)))(arrays, key)
    text = re.sub(r"0x[0-9a-f]+", "", str(program))
    return {
        "schema": str(SCHEMA),
        "program": _digest(text.encode(), *map(_bytes, program.consts)),
        "arrays": _digest(*map(_bytes, jax.tree.leaves(arrays))),
        "key": f"{plan.key_impl} {_bytes(key).hex()}",
        "block": str(plan.block),
        "covariance": str(plan.covariance),
        "edges": _digest(_bytes(edges)) if edges.size else "none",
        "keep": str(plan.keep),
        "dtype": str(plan.outline.dtype),
        "platform": plan.mesh.devices.flat[0].platform,
        "jax": jax.__version__,
    }


def _bytes(array) -> bytes:
    if isinstance(array, jax.Array) and jax.numpy.issubdtype(array.dtype, jax.dtypes.prng_key):
        array = jax.random.key_data(array)
    host = np.asarray(array)
    return f"{host.dtype}{host.shape}".encode() + host.tobytes()


def _digest(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:16]


class Checkpoint:
    """The file of a run.

    Parameters
    ----------
    path
        The file, an ``.npz`` archive by content.
    configuration
        See [`configuration`][].
    count, block, target
        Draws of the run, draws per block, and the standard error at which it stops (0 for never).
    """

    def __init__(self, path: Path, configuration: Mapping[str, str], *, count: int, block: int, target: float):
        self.path = path
        self._configuration = dict(configuration)
        self._count, self._block, self._target = count, block, target

    def save(self, state: State) -> None:
        """Write the state, whole or not at all."""
        levels = {
            f"level{level}.{name}": array
            for level, group in enumerate(state.tree.levels)
            if group is not None
            for name, array in group._asdict().items()
            if array is not None
        }
        gathered = {} if state.range is None else state.range._asdict()
        arrays = {name: array for name, array in gathered.items() if array is not None}
        if state.values:
            arrays["values"] = np.concatenate(state.values)
        header = {
            "configuration": self._configuration,
            "count": self._count,
            "target": self._target,
            "blocks": state.blocks,
            "failed": state.failed,
            "failed_draws": state.failed_draws,
        }
        content = io.BytesIO()
        np.savez(content, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **levels, **arrays)
        atomic_write(self.path, content.getvalue())

    def load(self) -> State:
        """The state in the file, or that of a run which has not begun where there is no file.

        Raises
        ------
        ValueError
            Where the file cannot be read, or belongs to a run whose numbers would differ.
        """
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return State()
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                arrays = dict(archive)
            header = json.loads(arrays.pop("header").tobytes())
        except (zipfile.BadZipFile, OSError, EOFError, KeyError, ValueError) as error:
            raise ValueError(
                f"{self.path} cannot be read as the checkpoint of a run: {error}. Give another path, or remove it."
            ) from error
        self._check(header)
        return _state(header, arrays)

    def _check(self, header) -> None:
        found = header["configuration"]
        names = [*self._configuration, *(name for name in found if name not in self._configuration)]
        differing = [
            f"{name} is {found.get(name)} there and {self._configuration.get(name)} here"
            for name in names
            if found.get(name) != self._configuration.get(name)
        ]
        done = header["blocks"] * self._block
        if header["count"] != self._count and done > min(header["count"], self._count):
            differing.append(
                f"it holds {min(done, header['count'])} of {header['count']} draws, which do not begin a run of "
                f"{self._count}"
            )
        if self._target > header["target"]:
            differing.append(f"it may have gone on beyond a standard error of {self._target}")
        if differing:
            raise ValueError(
                f"{self.path} is the checkpoint of another run: {'; '.join(differing)}. Give another path, or remove "
                "it."
            )


def _state(header, arrays) -> State:
    levels = []
    for level in range(header["blocks"].bit_length()):
        fields = [arrays.get(f"level{level}.{name}") for name in Moments._fields]
        levels.append(None if fields[0] is None else Moments(*fields))
    gathered = Range(arrays["minimum"], arrays["maximum"], arrays.get("counts")) if "minimum" in arrays else None
    values = (arrays["values"],) if "values" in arrays else ()
    failures = tuple(header["failed_draws"])
    return State(header["blocks"], Tree(tuple(levels)), gathered, values, header["failed"], failures)

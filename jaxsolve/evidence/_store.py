"""Evidence as a file: what a run found, kept so that figures can be drawn again."""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._files import atomic_write
from ._evidence import Curve, Law, Pair, Samples

TABLE_POINTS = 1001
"""Order statistics at which a law is tabulated in a file."""


def save_evidence(path: Path, grid: np.ndarray, pairs: Mapping[str, Pair]) -> str:
    """Write the pairs of a run to an ``.npz`` file, atomically; return its SHA-256.

    Curves and samples are kept whole. A law is kept as its first two moments and its distribution function at
    1001 order statistics of the samples (fewer where there are fewer draws). The bytes depend on the content alone.
    """
    arrays: dict[str, np.ndarray] = {"grid": np.asarray(grid)}
    for name, pair in pairs.items():
        predicted, measured = pair.predicted, pair.measured
        if isinstance(predicted, Law):
            assert isinstance(measured, Samples)
            ordered = np.sort(np.asarray(measured.values), axis=0)
            picked = np.unique(np.linspace(0, len(ordered) - 1, TABLE_POINTS).astype(int))
            table = ordered[picked]
            arrays[f"{name}/predicted/table"] = table
            arrays[f"{name}/predicted/cdf"] = np.asarray(predicted.cdf(table))
            arrays[f"{name}/predicted/mean"] = np.asarray(predicted.mean)
            arrays[f"{name}/predicted/variance"] = np.asarray(predicted.variance)
            arrays[f"{name}/measured/values"] = np.asarray(measured.values)
        else:
            assert isinstance(measured, Curve)
            for side, curve in (("predicted", predicted), ("measured", measured)):
                arrays[f"{name}/{side}/grid"] = np.asarray(curve.grid)
                arrays[f"{name}/{side}/value"] = np.asarray(curve.value)
                if curve.standard_error is not None:
                    arrays[f"{name}/{side}/standard_error"] = np.asarray(curve.standard_error)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # pyright: ignore[reportArgumentType]
    return atomic_write(path, buffer.getvalue())


def load_evidence(path: Path) -> tuple[np.ndarray, dict[str, Pair]]:
    """Read what [`save_evidence`][] wrote: the grid and the pairs, in the order of their names.

    A law comes back as the linear interpolation of its table: good for figures, not for a new test.

    Raises
    ------
    ValueError
        Where the file is not evidence or is damaged; the message names it.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        names = sorted({name.split("/")[0] for name in arrays if "/" in name})
        return arrays["grid"], {name: _pair(name, arrays) for name in names}
    except (KeyError, EOFError, zipfile.BadZipFile, ValueError, OSError) as error:
        raise ValueError(
            f"{path} does not hold the evidence of a run ({error}). Run it again to write it anew."
        ) from error


def _pair(name: str, arrays: Mapping[str, np.ndarray]) -> Pair:
    if f"{name}/predicted/table" in arrays:
        table, cdf = arrays[f"{name}/predicted/table"], arrays[f"{name}/predicted/cdf"]
        law = Law(
            eqx.Partial(_interpolate, table, cdf),
            jnp.asarray(arrays[f"{name}/predicted/mean"]),
            jnp.asarray(arrays[f"{name}/predicted/variance"]),
        )
        return Pair(law, Samples(jnp.asarray(arrays[f"{name}/measured/values"])))
    curves = []
    for side in ("predicted", "measured"):
        error = arrays.get(f"{name}/{side}/standard_error")
        curves.append(
            Curve(
                jnp.asarray(arrays[f"{name}/{side}/grid"]),
                jnp.asarray(arrays[f"{name}/{side}/value"]),
                None if error is None else jnp.asarray(error),
            )
        )
    return Pair(*curves)


def _interpolate(table, cdf, values):
    columns = [np.interp(np.asarray(values)[:, i], table[:, i], cdf[:, i]) for i in range(table.shape[1])]
    return np.stack(columns, axis=1)

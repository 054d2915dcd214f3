"""Kernels in files."""

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Shaped

from .._files import atomic_write
from .._types import ArrayLike

METADATA = "metadata.json"


class KernelFile(NamedTuple):
    """What [`load_kernels`][] finds."""

    kernels: dict[str, np.ndarray]
    metadata: dict[str, Any]


def save_kernels(
    path: str | Path, kernels: Mapping[str, Shaped[ArrayLike, "..."]], *, metadata: Mapping[str, Any] | None = None
) -> str:
    """Write arrays and what they are to one file in NumPy's format; return its SHA-256.

    The file is written whole or not at all, and equal arrays and metadata give equal bytes. Dtypes and shapes are kept.
    ``numpy.load`` reads the arrays too.

    Parameters
    ----------
    path
        Of the file, by convention ending in ``.npz``; taken as it is.
    kernels
        Named arrays; ``metadata.json`` is no name.
    metadata
        Whatever JSON can hold: seeds, widths, versions.

    Raises
    ------
    ValueError
        For a name that is empty or taken, an array of objects, and metadata that JSON cannot hold.
    OSError
        As the file system reports it; the old file is then unchanged.
    """
    arrays = {name: np.asarray(kernel) for name, kernel in kernels.items()}
    if wrong := [name for name, array in arrays.items() if not name or name == METADATA or array.dtype.hasobject]:
        raise ValueError(f"Kernels are arrays of numbers under names of their own; got {wrong}.")
    try:
        description = json.dumps(dict(metadata or {}), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as failure:
        raise ValueError(f"metadata holds what JSON can hold; {failure}. Convert arrays with tolist.") from failure
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(zipfile.ZipInfo(METADATA), description)
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue())
    return atomic_write(Path(path), content.getvalue())


def load_kernels(path: str | Path) -> KernelFile:
    """Read what [`save_kernels`][] wrote; nothing in the file is executed.

    Raises
    ------
    ValueError
        For a file that is damaged, or was written by something else.
    OSError
        As the file system reports it.
    """
    content = Path(path).read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            metadata = json.loads(archive.read(METADATA))
            names = [name for name in archive.namelist() if name != METADATA]
            members = {name: io.BytesIO(archive.read(name)) for name in names}
        kernels = {
            name.removesuffix(".npy"): np.lib.format.read_array(member, allow_pickle=False)
            for name, member in members.items()
        }
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError) as failure:
        raise ValueError(f"{path} does not hold kernels as save_kernels writes them: {failure}.") from failure
    return KernelFile(kernels, metadata)

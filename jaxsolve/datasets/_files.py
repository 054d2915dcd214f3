"""Reading the data files of the package."""

import functools
from collections.abc import Mapping
from importlib import resources
from types import MappingProxyType

import numpy as np


@functools.cache
def read_archive(name: str) -> Mapping[str, np.ndarray]:
    """Arrays of the archive ``name`` in the package's data folder, read once and write-protected."""
    with resources.files("jaxsolve.datasets").joinpath("data", name).open("rb") as file, np.load(file) as archive:
        arrays = {key: archive[key] for key in archive.files}
    for array in arrays.values():
        array.flags.writeable = False
    return MappingProxyType(arrays)

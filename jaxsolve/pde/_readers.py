"""Matrices and arrays from files: Matrix Market, ``.npy`` and ``.npz``, without running anything they hold."""

import gzip
import math
import os
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import coo_array, csc_array, csr_array

_FIELDS = {"real": (float, 1), "integer": (np.int64, 1), "complex": (complex, 2), "pattern": (float, 0)}
_MIRRORS = {"general": None, "symmetric": np.asarray, "skew-symmetric": np.negative, "hermitian": np.conj}
_LAYOUTS = {
    "csr": ("data", "indices", "indptr"),
    "csc": ("data", "indices", "indptr"),
    "coo": ("data", "row", "col"),
}


def load_matrix(path: str | os.PathLike[str]) -> "np.ndarray | coo_array | csr_array | csc_array":
    """A matrix from a file.

    Read are Matrix Market (``.mtx``, ``.mtx.gz``), a dense ``.npy``, and ``.npz`` in the layout of SciPy's
    ``save_npz`` (formats csr, csc and coo). Nothing is guessed: declared sizes are compared with what is there before
    memory is taken, and a file that breaks its format is refused. In Matrix Market

    - places count from 1, arrays run column by column, and the entries of a pattern are 1;
    - of a symmetric, skew-symmetric or Hermitian matrix the file holds the lower triangle, the upper one mirrors it;
    - blank lines and lines that begin with ``%`` mean nothing; there is one entry per line.

    Parameters
    ----------
    path
        The suffix decides on the format.

    Returns
    -------
    matrix
        A dense array, or a sparse one of SciPy: in coordinate form from Matrix Market, where entries at one place
        count as their sum; in the stored form from ``.npz``.

    Raises
    ------
    ValueError
        For another suffix, for a file that breaks its format, with the line where there is one, and for entries that
        are not finite.
    OSError
        For a file that cannot be opened.

    >>> import tempfile
    >>> text = "%%MatrixMarket matrix array real symmetric\\n2 2\\n1\\n2\\n3\\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.mtx")
    ...     _ = path.write_text(text)
    ...     load_matrix(path).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    name = os.fspath(path)
    if name.endswith((".mtx", ".mtx.gz")):
        matrix = _load_matrix_market(Path(path))
    elif name.endswith(".npz"):
        matrix = _sparse(load_arrays(path), name)
    elif name.endswith(".npy"):
        with open(path, "rb") as stream:
            matrix = _array(stream, os.fstat(stream.fileno()).st_size, name)
    else:
        raise ValueError(f"{name}: a matrix is read from .mtx, .mtx.gz, .npy or .npz. Convert it to one of these.")
    if matrix.ndim != 2 or matrix.dtype.kind not in "biufc":
        raise ValueError(f"{name}: a matrix has two axes of numbers; got shape {matrix.shape} of {matrix.dtype}.")
    entries = matrix if isinstance(matrix, np.ndarray) else matrix.data
    if not np.isfinite(entries).all():
        raise ValueError(f"{name}: {int((~np.isfinite(entries)).sum())} entries are NaN or infinite.")
    return matrix


def load_arrays(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The arrays of a ``.npz`` file by name: numbers, booleans and text.

    Python objects are refused unread, so that no code of the file runs. The size that an array declares is compared
    with the bytes of its member before memory is taken.

    Raises
    ------
    ValueError
        For a file that is no zip archive or is cut short, and for members that are no such arrays, with their name.
    OSError
        For a file that cannot be opened.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.npz")
    ...     np.savez(path, sizes=np.arange(3))
    ...     load_arrays(path)["sizes"].tolist()
    [0, 1, 2]
    """
    name = os.fspath(path)
    arrays = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if not member.filename.endswith(".npy"):
                    raise ValueError(f"{name}: member {member.filename!r} is no array; save with numpy.savez.")
                with archive.open(member) as stream:
                    key = member.filename.removesuffix(".npy")
                    arrays[key] = _array(stream, member.file_size, f"{name}, member {key!r}")
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise ValueError(f"{name} is no complete .npz archive: {error}. Save it again with numpy.savez.") from error
    return arrays


def _array(stream, size: int, name: str) -> np.ndarray:
    """One array in the format of NumPy from a stream of ``size`` bytes."""
    headers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    try:
        version = np.lib.format.read_magic(stream)
        shape, by_columns, dtype = headers[version](stream)
    except (ValueError, KeyError) as error:
        raise ValueError(f"{name} is no array in the format of NumPy: {error}.") from error
    if dtype.kind not in "biufcSU":
        raise ValueError(f"{name} has dtype {dtype}; only numbers, booleans and text are read.")
    declared, present = math.prod(shape) * dtype.itemsize, size - stream.tell()
    if declared != present:
        raise ValueError(f"{name} declares shape {shape} of {dtype}, {declared} bytes, and holds {present}.")
    values = np.frombuffer(stream.read(present), dtype)
    if values.nbytes != declared:
        raise ValueError(f"{name} is cut short after {values.nbytes} of {declared} bytes.")
    return values.reshape(shape, order="F" if by_columns else "C").copy(order="K")


def _sparse(arrays: dict[str, np.ndarray], name: str) -> "coo_array | csr_array | csc_array":
    """A sparse matrix from the arrays that SciPy saves."""
    import scipy.sparse

    layout = arrays["format"].item() if "format" in arrays and not arrays["format"].ndim else None
    layout = layout.decode(errors="replace") if isinstance(layout, bytes) else layout
    wanted = _LAYOUTS.get(layout) if isinstance(layout, str) else None
    if wanted is None or not {*wanted, "shape"} <= set(arrays):
        raise ValueError(
            f"{name} holds {sorted(arrays)}, not a sparse matrix of SciPy in format {', '.join(_LAYOUTS)}. Read other "
            "arrays with load_arrays."
        )
    data, first, second = (arrays[part] for part in wanted)
    try:
        shape = tuple(arrays["shape"].tolist())
        if layout == "coo":
            return scipy.sparse.coo_array((data, (first, second)), shape=shape)
        matrix = getattr(scipy.sparse, f"{layout}_array")((data, first, second), shape=shape)
        matrix.check_format(full_check=True)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} breaks the format {layout}: {error}.") from error
    return matrix


def _load_matrix_market(path: Path) -> "np.ndarray | coo_array":
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8", errors="replace") as stream:
            return _matrix_market(enumerate(stream, 1), str(path))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is no complete gzip file: {error}.") from error


def _matrix_market(lines, name: str) -> "np.ndarray | coo_array":
    banner = next(lines, (1, ""))[1].lower().split()
    if len(banner) != 5 or banner[:2] != ["%%matrixmarket", "matrix"] or banner[2] not in ("coordinate", "array"):
        raise ValueError(f"{name}, line 1: a file begins '%%MatrixMarket matrix coordinate|array'; got {banner}.")
    form, field, symmetry = banner[2:]
    if field not in _FIELDS or symmetry not in _MIRRORS or (field == "pattern" and form == "array"):
        raise ValueError(
            f"{name}, line 1: a {form} has a field of {', '.join(_FIELDS)} (a pattern only by coordinates) and a "
            f"symmetry of {', '.join(_MIRRORS)}; got {field} {symmetry}."
        )
    if symmetry == "hermitian" and field != "complex":
        raise ValueError(f"{name}, line 1: a hermitian matrix is complex; got {field}.")
    filled = ((number, line.split()) for number, line in lines if line.strip() and not line.lstrip().startswith("%"))
    axes = 3 if form == "coordinate" else 2
    number, words = next(filled, (1, []))
    sizes = _integers(words, name, number)
    if len(sizes) != axes or min(sizes) < 0:
        raise ValueError(f"{name}, line {number}: a line of {axes} sizes comes first; got {' '.join(words)!r}.")
    rows, columns = sizes[:2]
    mirror = _MIRRORS[symmetry]
    if mirror is not None and rows != columns:
        raise ValueError(f"{name}, line {number}: a {symmetry} matrix is square; got {rows} × {columns}.")
    if form == "coordinate":
        return _coordinates(filled, (rows, columns), sizes[2], field, symmetry, name)
    return _dense(filled, (rows, columns), field, symmetry, name)


def _coordinates(lines, shape, count, field, symmetry, name):
    import scipy.sparse

    dtype, parts = _FIELDS[field]
    places, values = [], []
    for number, words in lines:
        if len(values) == count:
            raise ValueError(f"{name}, line {number}: {count} entries are declared, and more follow.")
        if len(words) != 2 + parts:
            raise ValueError(f"{name}, line {number}: an entry has {2 + parts} words; got {' '.join(words)!r}.")
        row, column = place = _integers(words[:2], name, number)
        if not (1 <= row <= shape[0] and 1 <= column <= shape[1]):
            raise ValueError(f"{name}, line {number}: {row}, {column} is no place of a {shape[0]} × {shape[1]} matrix.")
        if symmetry != "general" and (column > row or (column == row and symmetry == "skew-symmetric")):
            raise ValueError(f"{name}, line {number}: a {symmetry} file holds no entry at {row}, {column}.")
        places.append(place)
        values.append(_value(words[2:], dtype, name, number))
    if len(values) != count:
        raise ValueError(f"{name}: {count} entries are declared, and {len(values)} follow.")
    row, column = np.asarray(places, np.int64).reshape(-1, 2).T - 1
    data = np.asarray(values, dtype)
    if (mirror := _MIRRORS[symmetry]) is not None:
        below = row > column
        row, column = np.concatenate([row, column[below]]), np.concatenate([column, row[below]])
        data = np.concatenate([data, mirror(data[below])])
    return scipy.sparse.coo_array((data, (row, column)), shape=shape)


def _dense(lines, shape, field, symmetry, name):
    dtype, parts = _FIELDS[field]
    size, mirror = shape[0], _MIRRORS[symmetry]
    strict = symmetry == "skew-symmetric"
    count = math.prod(shape) if mirror is None else size * (size - 1) // 2 if strict else size * (size + 1) // 2
    values = []
    for number, words in lines:
        if len(values) == count:
            raise ValueError(f"{name}, line {number}: {count} entries are declared, and more follow.")
        if len(words) != parts:
            raise ValueError(f"{name}, line {number}: an entry has {parts} words; got {' '.join(words)!r}.")
        values.append(_value(words, dtype, name, number))
    if len(values) != count:
        raise ValueError(f"{name}: {count} entries are declared, and {len(values)} follow.")
    data = np.asarray(values, dtype)
    if mirror is None:
        return data.reshape(shape, order="F")
    matrix = np.zeros(shape, dtype)
    upper = np.triu_indices(size, int(strict))
    matrix.T[upper] = data
    matrix[upper] = np.where(upper[0] == upper[1], data, mirror(data))
    return matrix


def _integers(words, name, number) -> list[int]:
    try:
        return [int(word) for word in words]
    except ValueError as error:
        raise ValueError(f"{name}, line {number}: sizes and places are integers; got {' '.join(words)!r}.") from error


def _value(words, dtype, name, number):
    try:
        if dtype is complex:
            return complex(float(words[0]), float(words[1]))
        return dtype(words[0]) if words else 1.0
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{name}, line {number}: {' '.join(words)!r} is no {dtype.__name__} number.") from error

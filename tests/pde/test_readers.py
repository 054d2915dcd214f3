"""Readers against what SciPy and NumPy write, and broken files."""

import gzip

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from jaxsolve.pde import load_arrays, load_matrix

RANDOM = np.random.default_rng(0)
DENSE = RANDOM.standard_normal((5, 5))
MATRICES = {
    "real-general": DENSE[:, :3],
    "complex-general": DENSE + 1j * DENSE.T,
    "integer-general": (10 * DENSE).astype(np.int64),
    "real-symmetric": DENSE + DENSE.T,
    "real-skew-symmetric": DENSE - DENSE.T,
    "complex-hermitian": DENSE + DENSE.T + 1j * (DENSE - DENSE.T),
}


@pytest.mark.parametrize("kind", MATRICES)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz"])
def test_matrix_market_as_scipy_writes_it(kind, sparse, suffix, tmp_path):
    matrix, (field, symmetry) = MATRICES[kind], kind.split("-", 1)
    written = np.where(np.abs(matrix) > 0.5, matrix, 0) if sparse else matrix
    scipy.io.mmwrite(
        tmp_path / "a.mtx",
        scipy.sparse.coo_array(written) if sparse else written,
        field=field,
        symmetry=symmetry,
        precision=17,
    )
    path = tmp_path / f"b{suffix}"
    text = (tmp_path / "a.mtx").read_bytes()
    path.write_bytes(gzip.compress(text) if suffix == ".mtx.gz" else text)
    found = load_matrix(path)
    assert isinstance(found, scipy.sparse.coo_array if sparse else np.ndarray)
    assert found.dtype == written.dtype
    np.testing.assert_array_equal(found if isinstance(found, np.ndarray) else found.toarray(), written)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_sparse_matrices_as_scipy_saves_them(layout, tmp_path):
    matrix = scipy.sparse.random_array((6, 4), density=0.4, format=layout, rng=RANDOM)
    scipy.sparse.save_npz(tmp_path / "a.npz", matrix)
    found = load_matrix(tmp_path / "a.npz")
    assert not isinstance(found, np.ndarray)
    assert found.format == layout
    np.testing.assert_array_equal(found.toarray(), matrix.toarray())


def test_arrays_as_numpy_saves_them(tmp_path):
    arrays = {
        "a": DENSE,
        "b": np.asfortranarray(DENSE),
        "n": np.arange(3),
        "s": np.array("word"),
        "e": np.zeros((0, 3)),
    }
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    found = load_arrays(tmp_path / "a.npz")
    assert set(found) == set(arrays)
    for name, value in arrays.items():
        assert found[name].dtype == value.dtype
        np.testing.assert_array_equal(found[name], value)
    np.save(tmp_path / "a.npy", DENSE.astype(np.float32))
    np.testing.assert_array_equal(load_matrix(tmp_path / "a.npy"), DENSE.astype(np.float32))


REAL = "%%MatrixMarket matrix coordinate real general\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (REAL + "2 2 2\n1 1 1.0\n", "2 entries are declared, and 1 follow"),
        (REAL + "2 2 1\n% note\n1 1 1.0\n2 2 1.0\n", "line 5.*and more follow"),
        (REAL + "2 2 1\n0 1 1.0\n", "line 3: 0, 1 is no place"),
        (REAL + "2 2 1\n1 1\n", "3 words; got '1 1'"),
        (REAL + "2 2 1\n1 1 one\n", "'one' is no float"),
        (REAL + "2 2 1\n1 1 nan\n", "1 entries are NaN"),
        (REAL + "2 2\n", "3 sizes"),
        (REAL, "3 sizes"),
        (REAL.replace("general", "symmetric") + "2 2 1\n1 2 1.0\n", "holds no entry at 1, 2"),
        (REAL.replace("general", "skew-symmetric") + "2 2 1\n1 1 1.0\n", "holds no entry at 1, 1"),
        (REAL.replace("general", "hermitian") + "1 1 1\n1 1 1.0\n", "is complex"),
        (REAL.replace("general", "symmetric") + "2 3 1\n2 1 1.0\n", "square"),
        (REAL.replace("real", "rational"), "got rational general"),
        (REAL.replace("coordinate", "array") + "2 2\n1\n", "4 entries are declared, and 1 follow"),
        ("1 1 1\n", "line 1: a file begins"),
    ],
)
def test_broken_matrix_market_is_refused_with_its_place(text, told, tmp_path):
    (tmp_path / "a.mtx").write_text(text)
    with pytest.raises(ValueError, match=rf"a\.mtx.*{told}"):
        load_matrix(tmp_path / "a.mtx")


def test_broken_archives_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, a=np.arange(500.0), note=np.array([print], dtype=object))
    with pytest.raises(ValueError, match="member 'note' has dtype object"):
        load_arrays(path)
    np.savez(path, a=np.arange(500.0))
    with pytest.raises(ValueError, match="not a sparse matrix"):
        load_matrix(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="no complete"):
        load_arrays(path)
    np.savez(path, format=b"csr", shape=(2, 2), data=np.ones(2), indices=np.array([0, 7]), indptr=np.arange(3))
    with pytest.raises(ValueError, match="breaks the format csr"):
        load_matrix(path)
    np.savez(path, format=b"coo", shape=2, data=np.ones(2), row=np.arange(2), col=np.arange(2))
    with pytest.raises(ValueError, match="breaks the format coo"):
        load_matrix(path)
    compressed = gzip.compress((REAL + "2 2 1\n1 1 1.0\n" + "%\n" * 1000).encode())
    (tmp_path / "a.mtx.gz").write_bytes(compressed[:-9])
    with pytest.raises(ValueError, match="no complete gzip"):
        load_matrix(tmp_path / "a.mtx.gz")


def test_broken_dense_files_are_refused(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, DENSE)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ValueError, match="200 bytes, and holds 192"):
        load_matrix(path)
    np.save(path, np.arange(3.0))
    with pytest.raises(ValueError, match="two axes"):
        load_matrix(path)
    path.write_bytes(b"none")
    with pytest.raises(ValueError, match="format of NumPy"):
        load_matrix(path)
    with pytest.raises(ValueError, match=r"\.mtx"):
        load_matrix(tmp_path / "a.txt")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_matrix(tmp_path / "nowhere.mtx")

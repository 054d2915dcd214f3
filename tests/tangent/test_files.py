"""Kernels survive a round trip, a damaged file is refused, and an interrupted write leaves the old one."""

import os

import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.tangent import load_kernels, save_kernels

KERNELS = {"start": jnp.arange(9.0).reshape(3, 3), "later": np.asfortranarray(np.eye(2, dtype=np.float32))}
METADATA = {"seed": 3, "widths": [2, 5, 1], "rule": "backprop"}


def test_arrays_and_metadata_survive(tmp_path):
    path = tmp_path / "new" / "kernels.npz"
    first = save_kernels(path, KERNELS, metadata=METADATA)
    found = load_kernels(path)
    assert found.metadata == METADATA
    assert list(found.kernels) == list(KERNELS)
    for name, kernel in KERNELS.items():
        assert found.kernels[name].dtype == kernel.dtype
        np.testing.assert_array_equal(found.kernels[name], kernel)
    np.testing.assert_array_equal(np.load(path)["start"], KERNELS["start"])
    assert save_kernels(tmp_path / "other", KERNELS, metadata=METADATA) == first


def test_values_that_are_not_finite_and_empty_arrays_survive(tmp_path):
    save_kernels(tmp_path / "k", {"odd": np.array([np.nan, np.inf, -0.0]), "none": np.zeros((0, 0))})
    found = load_kernels(tmp_path / "k")
    np.testing.assert_array_equal(found.kernels["odd"], [np.nan, np.inf, 0.0])
    assert np.signbit(found.kernels["odd"][2])
    assert found.kernels["none"].shape == (0, 0)
    assert found.metadata == {}


def test_a_write_that_fails_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "k.npz"
    save_kernels(path, KERNELS)
    before = path.read_bytes()

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space"):
        save_kernels(path, {"start": np.zeros(3)})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_damaged_and_foreign_files_are_refused(tmp_path):
    path = tmp_path / "k.npz"
    save_kernels(path, KERNELS)
    content = path.read_bytes()
    np.savez(tmp_path / "foreign.npz", start=np.ones(2))
    for wrong in (content[: len(content) // 2], b"", content.replace(b"NUMPY", b"NUMPX")):
        path.write_bytes(wrong)
        with pytest.raises(ValueError, match="does not hold kernels"):
            load_kernels(path)
    with pytest.raises(ValueError, match="does not hold kernels"):
        load_kernels(tmp_path / "foreign.npz")
    with pytest.raises(FileNotFoundError):
        load_kernels(tmp_path / "none.npz")


def test_what_cannot_be_written_is_refused(tmp_path):
    for kernels, metadata in (
        ({"": np.ones(2)}, {}),
        ({"metadata.json": np.ones(2)}, {}),
        ({"words": np.array([object()])}, {}),
        (KERNELS, {"rule": object()}),
        (KERNELS, {"loss": float("nan")}),
    ):
        with pytest.raises(ValueError, match=r"names of their own|JSON"):
            save_kernels(tmp_path / "k", kernels, metadata=metadata)
    assert not (tmp_path / "k").exists()

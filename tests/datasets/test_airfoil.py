"""The airfoil mesh."""

import numpy as np
import pytest

from jaxsolve.datasets import airfoil_mesh


def test_shapes_and_counting_from_zero():
    points, triangles = airfoil_mesh()
    assert points.shape == (322, 2)
    assert points.dtype == np.float64
    assert triangles.shape == (582, 3)
    assert np.array_equal(np.unique(triangles), np.arange(322))


def test_is_an_annulus_around_the_airfoil():
    _, triangles = airfoil_mesh()
    pairs = np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    assert 322 - len(np.unique(pairs, axis=0)) + len(triangles) == 0


def test_is_the_mesh_of_the_gallery():
    gallery = pytest.importorskip("pyamg.gallery")
    example = gallery.load_example("airfoil")
    points, triangles = airfoil_mesh()
    assert np.array_equal(points, example["vertices"])
    assert np.array_equal(triangles, example["elements"])


def test_the_arrays_are_protected():
    with pytest.raises(ValueError, match="read-only"):
        airfoil_mesh().points[0] = 0.0

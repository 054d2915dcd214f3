"""Triangle meshes: geometry, boundary, refusals."""

import numpy as np
import pytest

from jaxsolve.datasets import airfoil_mesh
from jaxsolve.pde import TriangleMesh

POINTS = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.5, 0.5]]
TRIANGLES = [[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]]


def test_geometry_of_a_square():
    mesh = TriangleMesh(POINTS, TRIANGLES)
    assert np.allclose(mesh.areas, 0.25, rtol=1e-15)
    assert np.allclose(mesh.edges.sum(axis=1), 0, atol=1e-16)
    assert np.allclose(mesh.centroids[0], [0.5, 1 / 6], rtol=1e-15)
    assert mesh.boundary_nodes.tolist() == [0, 1, 2, 3]
    assert mesh.interior_nodes.tolist() == [4]


def test_an_edge_lies_opposite_its_corner():
    mesh = TriangleMesh(*airfoil_mesh())
    corners = mesh.points[mesh.triangles]
    assert np.array_equal(mesh.edges[:, 0], corners[:, 2] - corners[:, 1])
    assert np.array_equal(mesh.edges[:, 1], corners[:, 0] - corners[:, 2])
    assert np.array_equal(mesh.edges[:, 2], corners[:, 1] - corners[:, 0])


def test_area_and_boundary_do_not_depend_on_the_orientation():
    points, triangles = airfoil_mesh()
    mesh, reversed_mesh = TriangleMesh(points, triangles), TriangleMesh(points, triangles[:, ::-1])
    assert np.allclose(mesh.areas, reversed_mesh.areas, rtol=1e-12)
    assert np.array_equal(mesh.boundary_nodes, reversed_mesh.boundary_nodes)


def test_the_airfoil_has_its_boundary_last():
    mesh = TriangleMesh(*airfoil_mesh())
    assert np.array_equal(mesh.interior_nodes, np.arange(260))
    assert np.array_equal(mesh.boundary_nodes, np.arange(260, 322))


def test_a_node_that_no_triangle_uses_is_neither_inside_nor_on_the_boundary():
    mesh = TriangleMesh([*POINTS, [9.0, 9.0]], TRIANGLES)
    assert mesh.interior_nodes.tolist() == [4]
    assert 5 not in mesh.boundary_nodes


@pytest.mark.parametrize(
    ("points", "triangles", "message"),
    [
        (POINTS, np.array(TRIANGLES) + 1, r"Triangles 0, 1, 2, 3 name nodes outside 0 to 4.*Subtract 1"),
        (POINTS, [[0, 1, -1]], "outside 0 to 4"),
        (POINTS, [[0, 1, 2], [0, 4, 2], [1, 1, 2]], "Triangles 1, 2 have no area"),
        (POINTS, [[0, 1, 4], [1, 4, 0]], "Triangles 1 have the corners of an earlier one"),
        (POINTS, [[0, 1, 4], [0, 1, 2], [0, 1, 3]], "between nodes 0 and 1 belongs to 3 triangles"),
        ([[0.0, 0.0], [1.0, np.nan], [0.0, 1.0]], [[0, 1, 2]], "nodes 1 are not finite"),
        (POINTS, np.array(TRIANGLES, float), "integer indices"),
        (POINTS, np.zeros((0, 3), int), "at least one"),
        (POINTS, [[0, 1, 2, 3]], r"got \(5, 2\) and \(1, 4\)"),
        (np.zeros((4, 3)), TRIANGLES, r"got \(4, 3\)"),
    ],
)
def test_a_broken_mesh_is_refused_by_name(unchecked, points, triangles, message):
    with pytest.raises(ValueError, match=message):
        TriangleMesh(points, triangles)

"""Assembled matrices against two other codes, and by their properties."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.datasets import airfoil_mesh
from jaxsolve.datasets._files import read_archive
from jaxsolve.pde import GalerkinAssembler, TriangleMesh, stiffness_assembler

MESH = TriangleMesh(*airfoil_mesh())
ASSEMBLER = stiffness_assembler(MESH)


def coefficient(seed, *shape):
    return jnp.asarray(np.exp(np.random.default_rng(seed).standard_normal((*shape, 582))))


def relative(measured, reference):
    return np.linalg.norm(np.asarray(measured) - reference) / np.linalg.norm(reference)


def all_nodes_free():
    matrices = np.einsum("tik,tjk->tij", MESH.edges, MESH.edges) / (4 * MESH.areas)[:, None, None]
    return GalerkinAssembler(matrices, MESH.triangles, np.arange(322))


def test_equals_the_matrix_that_comes_with_the_mesh():
    archive = read_archive("airfoil.npz")
    shipped = np.zeros((260, 260))
    rows = np.repeat(np.arange(260), np.diff(archive["matrix_indptr"]))
    shipped[rows, archive["matrix_indices"]] = archive["matrix_data"]
    assert relative(ASSEMBLER.assemble(jnp.ones(582)), shipped) <= 1e-13
    assert ASSEMBLER.rows.shape == archive["matrix_data"].shape


def test_equals_scikit_fem_with_a_random_coefficient():
    skfem = pytest.importorskip("skfem")
    helpers = pytest.importorskip("skfem.helpers")
    mesh = skfem.MeshTri(np.ascontiguousarray(MESH.points.T), np.ascontiguousarray(MESH.triangles.T.astype(np.int64)))
    basis = skfem.Basis(mesh, skfem.ElementTriP1())
    form = skfem.BilinearForm(lambda u, v, w: w["a"] * helpers.dot(helpers.grad(u), helpers.grad(v)))
    values = coefficient(0)
    field = skfem.Basis(mesh, skfem.ElementTriP0()).interpolate(np.asarray(values))
    reference = skfem.asm(form, basis, a=field).toarray()[:260, :260]
    assert relative(ASSEMBLER.assemble(values), reference) <= 1e-13


def test_is_symmetric_and_positive_definite():
    matrix = np.asarray(ASSEMBLER.assemble(coefficient(1)))
    assert np.array_equal(matrix, matrix.T)
    assert np.linalg.eigvalsh(matrix).min() > 0


def test_is_linear_in_the_coefficient():
    first, second = coefficient(2, 2)
    combined = ASSEMBLER.assemble(2.5 * first - second)
    separate = 2.5 * ASSEMBLER.assemble(first) - ASSEMBLER.assemble(second)
    assert relative(combined, np.asarray(separate)) <= 1e-14


def test_energy_of_a_linear_function_is_exact():
    slope, values = np.array([0.7, -1.3]), coefficient(3)
    function = MESH.points @ slope + 2.0
    matrix = np.asarray(all_nodes_free().assemble(values))
    energy = float((np.asarray(values) * MESH.areas).sum() * (slope @ slope))
    assert function @ matrix @ function == pytest.approx(energy, rel=1e-13)
    assert np.abs(matrix.sum(axis=1)).max() <= 1e-13 * np.abs(matrix).max()


def test_a_linear_function_solves_the_problem_inside():
    residual = np.asarray(all_nodes_free().assemble(jnp.ones(582))) @ MESH.points
    assert np.abs(residual[MESH.interior_nodes]).max() <= 1e-12
    assert np.abs(residual[MESH.boundary_nodes]).max() > 0.1


def test_the_order_of_triangles_and_corners_does_not_matter():
    order = np.random.default_rng(4).permutation(582)
    shuffled = stiffness_assembler(TriangleMesh(MESH.points, MESH.triangles[order][:, [2, 0, 1]]))
    values = coefficient(4)
    assert relative(shuffled.assemble(values[order]), np.asarray(ASSEMBLER.assemble(values))) <= 1e-14


def test_derivative_is_the_energy_of_each_cell():
    vector = np.random.default_rng(5).standard_normal(260)
    padded = np.concatenate([vector, np.zeros(62)])[MESH.triangles]
    cells = np.einsum("ti,tij,tj->t", padded, np.asarray(ASSEMBLER.cell_matrices), padded)
    energy = jax.grad(lambda values: jnp.asarray(vector) @ ASSEMBLER.assemble(values) @ jnp.asarray(vector))
    assert relative(energy(coefficient(5)), cells) <= 1e-13


def test_maps_over_coefficients():
    values = coefficient(6, 3)
    stacked = jax.jit(jax.vmap(ASSEMBLER.assemble))(values)
    for i in range(3):
        assert relative(stacked[i], np.asarray(ASSEMBLER.assemble(values[i]))) <= 1e-15


def test_non_zeros_fill_the_matrix():
    values = coefficient(7)
    matrix = np.zeros((260, 260))
    matrix[np.asarray(ASSEMBLER.rows), np.asarray(ASSEMBLER.columns)] = np.asarray(ASSEMBLER.nonzeros(values))
    assert np.array_equal(matrix, np.asarray(ASSEMBLER.assemble(values)))


def test_single_precision_is_the_rounded_matrix():
    values = coefficient(8)
    matrix = stiffness_assembler(MESH, dtype=jnp.float32).assemble(values.astype(jnp.float32))
    assert matrix.dtype == jnp.float32
    assert relative(matrix, np.asarray(ASSEMBLER.assemble(values))) <= 4 * np.finfo(np.float32).eps


def test_free_unknowns_number_the_rows():
    matrices = np.array([[[2.0, -1.0], [-1.0, 3.0]]] * 2)
    assembler = GalerkinAssembler(matrices, np.array([[0, 1], [1, 2]]), np.array([2, 1]))
    assert assembler.assemble(jnp.array([1.0, 10.0])).tolist() == [[30.0, -10.0], [-10.0, 23.0]]


def test_bad_input_is_refused(unchecked):
    with pytest.raises(ValueError, match=r"each of the 582 cells; got shape \(581,\)"):
        ASSEMBLER.assemble(jnp.ones(581))
    with pytest.raises(ValueError, match=r"jax\.vmap"):
        ASSEMBLER.assemble(jnp.ones((2, 582)))
    with pytest.raises(ValueError, match="Refine the mesh"):
        stiffness_assembler(TriangleMesh([[0, 0], [1, 0], [0, 1]], [[0, 1, 2]]))
    with pytest.raises(ValueError, match=r"got \(2, 3, 3\) and \(2, 2\)"):
        GalerkinAssembler(np.ones((2, 3, 3)), np.zeros((2, 2), int), np.arange(1))
    for cells, free in (([[0, -1]], [0]), ([[0, 1]], [1, 1])):
        with pytest.raises(ValueError, match="negative or repeated"):
            GalerkinAssembler(np.ones((1, 2, 2)), np.array(cells), np.array(free))

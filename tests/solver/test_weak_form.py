"""The weak-form encoder: exact without noise for every link and mesh, equal to least squares written out, trained."""

from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.optimize import least_squares

from jaxsolve._results import RESULTS
from jaxsolve.datasets import airfoil_mesh
from jaxsolve.pde import (
    ParametricDiffusion,
    TriangleMesh,
    cosine_modes,
    interval_grid,
    quadrant_modes,
    square_grid,
    triangle_grid,
)
from jaxsolve.solver import WeakFormEncoder, draw_prompts, project_to_box, train_encoder

LINE, SQUARE, AIRFOIL = interval_grid(15), square_grid(5), triangle_grid(TriangleMesh(*airfoil_mesh()))
FAMILIES = {
    "interval": ParametricDiffusion(LINE, cosine_modes(LINE)),
    "quadrants": ParametricDiffusion(SQUARE, quadrant_modes(SQUARE)),
    "log-affine": ParametricDiffusion(LINE, cosine_modes(LINE), link="log-affine"),
}
LARGER = {
    "log-affine on the square": ParametricDiffusion(SQUARE, cosine_modes(SQUARE, amplitude=0.5), link="log-affine"),
    "airfoil": ParametricDiffusion(AIRFOIL, cosine_modes(AIRFOIL)),
    "log-affine around the airfoil": ParametricDiffusion(AIRFOIL, cosine_modes(AIRFOIL), link="log-affine"),
}
TRUTH = jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (12, 4)))
WEIGHTS = ("identity", "mean_inverse", "mean_inverse_square")


def prompts(family, *, key=0, **options):
    return draw_prompts(family.operators(TRUTH), key=jax.random.key(key), **options)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_without_noise_coefficients_are_exact(name, weights):
    family = FAMILIES[name]
    found = WeakFormEncoder.from_family(family, weights=weights).estimate(*prompts(family, pairs=8))
    assert float(jnp.mean((found.coefficients - TRUTH) ** 2)) <= 1e-24
    assert (found.condition >= 1).all()


@pytest.mark.parametrize("name", LARGER)
def test_corners_of_the_box_are_exact_on_every_mesh(name):
    family = LARGER[name]
    truth = jnp.concatenate([jnp.ones((1, 4)), -jnp.ones((1, 4)), TRUTH[:2]])
    pair = draw_prompts(family.operators(truth), pairs=3, key=jax.random.key(0))
    found = WeakFormEncoder.from_family(family).estimate(*pair)
    assert float(jnp.abs(found.coefficients - truth).max()) <= 1e-12


def written_out(parameters):
    """`A(z)` of the log-affine family on the interval, by differences and products."""
    midpoints = (np.arange(16) + 0.5) / 16
    coefficient = np.exp(sum(0.2 * z * np.cos((k + 1) * np.pi * midpoints) for k, z in enumerate(parameters)))
    differences = np.eye(15, 16) - np.eye(15, 16, 1)
    return 16 * (differences * coefficient) @ differences.T


@pytest.mark.parametrize("weights", WEIGHTS)
def test_passes_end_at_the_nonlinear_least_squares_estimate(weights):
    """Against a solver of SciPy with derivatives by differences, on matrices that are written out."""
    family = FAMILIES["log-affine"]
    np.testing.assert_allclose(family.operator(TRUTH[0]), written_out(TRUTH[0]), rtol=1e-12, atol=1e-12)
    noise = {"identity": 0.05, "mean_inverse": 0.02, "mean_inverse_square": 0.005}[weights]
    states, loads = prompts(family, pairs=3, load_noise=noise)
    found = WeakFormEncoder.from_family(family, weights=weights).estimate(states, loads, passes=20)
    root = np.linalg.matrix_power(written_out(np.zeros(4)), -1) if weights == "mean_inverse_square" else np.eye(15)
    if weights == "mean_inverse":
        root = np.linalg.cholesky(np.linalg.inv(written_out(np.zeros(4)))).T
    for task in range(3):

        def residual(parameters, u=np.asarray(states[task]), f=np.asarray(loads[task])):
            return ((u @ written_out(parameters) - f) @ root.T).ravel()

        expected = least_squares(residual, np.zeros(4), jac="3-point", xtol=1e-14, ftol=1e-14, gtol=1e-14)
        assert np.abs(residual(found.coefficients[task])).max() > 1e-4
        np.testing.assert_allclose(found.coefficients[task], expected.x, rtol=1e-6, atol=1e-7)


def test_errors_of_a_log_affine_coefficient_are_of_first_order_in_the_noise():
    """`ẑ − z = (Σ D_jᵀ D_j)^{-1} Σ D_jᵀ s ξ_j + O(s²)`, with `D_j` by differences of matrices written out."""
    family = FAMILIES["log-affine"]
    states, loads = prompts(family, pairs=4)
    noise = np.random.default_rng(5).standard_normal(loads.shape)
    encoder, steps = WeakFormEncoder.from_family(family), 1e-5 * np.eye(4)
    expected = []
    for task, z in enumerate(np.asarray(TRUTH)):
        slopes = np.stack([(written_out(z + step) - written_out(z - step)) / 2e-5 for step in steps])
        design = np.einsum("kij,pj->pik", slopes, states[task]).reshape(-1, 4)
        expected.append(np.linalg.lstsq(design, noise[task].ravel())[0])
    remainders = []
    for strength in (1e-3, 5e-4):
        found = encoder.estimate(states, loads + strength * noise).coefficients
        remainders.append(np.linalg.norm((found - TRUTH) / strength - np.stack(expected)) / np.linalg.norm(expected))
    assert remainders[0] < 1e-2
    assert remainders[0] / remainders[1] == pytest.approx(2, rel=0.05)


def test_linearising_once_is_not_enough_for_a_log_affine_coefficient():
    family = FAMILIES["log-affine"]
    encoder, pair = WeakFormEncoder.from_family(family), prompts(family, pairs=4)
    errors = [
        float(jnp.abs(encoder.estimate(*pair, passes=passes, throw=False).coefficients - TRUTH).max())
        for passes in (1, 2, 3, 4, 6)
    ]
    assert errors[0] > 0.1
    assert all(after < 3 * before**2 for before, after in pairwise(errors[:4]))
    assert errors[4] < 1e-12


def test_passes_that_do_not_contract_are_told():
    family = FAMILIES["log-affine"]
    encoder, pair = WeakFormEncoder.from_family(family), prompts(family, pairs=1, load_noise=10.0)
    with pytest.raises(ValueError, match=r"more passes.*of 12 prompts"):
        encoder.estimate(*pair)
    found = encoder.estimate(*pair, throw=False)
    slow = found.result == RESULTS.not_converged
    assert slow.any()
    assert (found.change[slow] > 1e-8).all()
    quiet = encoder.estimate(*prompts(family, pairs=4))
    assert (quiet.change < 1e-12).all()


def test_the_transformer_takes_the_same_passes():
    family = FAMILIES["log-affine"]
    encoder, pair = WeakFormEncoder.from_family(family), prompts(family, pairs=8, load_noise=1e-3)
    for passes in (1, 3):
        expected = encoder.estimate(*pair, passes=passes, throw=False).coefficients
        found = encoder.rollout(*pair, depth=200, passes=passes)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


def test_a_ridge_penalises_the_parameters_in_every_pass():
    """Where one more pass changes nothing, the gradient of the squares and that of the penalty cancel."""
    family = FAMILIES["log-affine"]
    encoder, pair = WeakFormEncoder.from_family(family), prompts(family, pairs=4)
    found = encoder.estimate(*pair, ridge=0.1, passes=40).coefficients
    matrices, sides = encoder.normal_equations(*pair, found)
    penalty = 0.1 * jnp.trace(matrices, axis1=1, axis2=2)[:, None] / 4 * found
    np.testing.assert_allclose(sides, penalty, rtol=1e-7, atol=1e-9)
    assert float(jnp.abs(found - TRUTH).max()) > 1e-2


@pytest.mark.parametrize("weights", WEIGHTS)
def test_equals_least_squares_written_out(weights):
    family = FAMILIES["interval"]
    encoder = WeakFormEncoder.from_family(family, weights=weights)
    states, loads = prompts(family, pairs=3, load_noise=0.1, state_noise=1e-3)
    found = encoder.estimate(states, loads).coefficients
    mean, modes = np.asarray(family.mean_operator), np.asarray(family.mode_operators)
    power = {"identity": 0, "mean_inverse": -0.5, "mean_inverse_square": -1}[weights]
    eigenvalues, vectors = np.linalg.eigh(mean)
    root = (vectors * eigenvalues**power) @ vectors.T
    for task in range(3):
        design = np.concatenate([root @ np.stack([mode @ u for mode in modes], axis=1) for u in states[task]])
        target = np.concatenate([root @ (f - mean @ u) for u, f in zip(states[task], loads[task], strict=True)])
        expected = np.linalg.lstsq(design, target)[0]
        np.testing.assert_allclose(found[task], expected, rtol=1e-9, atol=1e-11)


def test_the_transformer_reads_the_same_coefficients():
    """Fourteen numbers per token, one head of equal scores, and Richardson steps that converge at `(κ−1)/(κ+1)`."""
    family = FAMILIES["interval"]
    encoder = WeakFormEncoder.from_family(family)
    states, loads = prompts(family, pairs=8, load_noise=1e-3)
    tokens = encoder.tokens(states, loads)
    assert tokens.shape == (12, 8, 14)
    scores = jax.nn.softmax(jnp.zeros((8, 8)), axis=1)
    attended = jnp.einsum("qp,tpf->tqf", scores, tokens)[:, 0]
    matrices, sides = encoder.normal_equations(states, loads)
    np.testing.assert_allclose(attended[:, 10:], sides, rtol=1e-12)
    np.testing.assert_allclose(matrices[:, *np.tril_indices(4)], attended[:, :10], rtol=1e-12)
    estimate = encoder.estimate(states, loads)
    rates = (estimate.condition - 1) / (estimate.condition + 1)
    size = jnp.linalg.norm(estimate.coefficients, axis=1)
    for depth in (1, 5, 20):
        errors = jnp.linalg.norm(encoder.rollout(states, loads, depth=depth) - estimate.coefficients, axis=1)
        assert (errors <= rates**depth * size * (1 + 1e-9)).all()


def test_weights_matched_to_the_noise_win():
    """Unit weights for noise on the loads; `A_0^{-2}`, its inverse covariance, for noise on the states."""
    family = FAMILIES["interval"]

    def error(weights, **noise):
        estimate = WeakFormEncoder.from_family(family, weights=weights).estimate(*prompts(family, pairs=16, **noise))
        return float(jnp.mean((estimate.coefficients - TRUTH) ** 2))

    loads = [error(weights, load_noise=1e-3) for weights in WEIGHTS]
    states = [error(weights, state_noise=1e-3) for weights in WEIGHTS]
    assert loads[0] < loads[1] / 3 < loads[2] / 9
    assert states[2] < states[1] / 2 < states[0] / 10


@pytest.mark.optax
def test_descent_learns_weights_for_noise_on_the_states():
    family = FAMILIES["interval"]
    start = WeakFormEncoder.from_family(family)
    noise = {"pairs": 8, "state_noise": 1e-3}
    run = train_encoder(
        start,
        tasks=32,
        depth=10,
        optimizer=optax.adam(optax.cosine_decay_schedule(1e-2, 150), eps=1e-20),
        steps=150,
        key=jax.random.key(1),
        **noise,
    )
    trained = run.parameters
    held_out = prompts(family, key=2, **noise)
    errors = [float(jnp.mean((encoder.estimate(*held_out).coefficients - TRUTH) ** 2)) for encoder in (start, trained)]
    assert errors[1] < errors[0] / 3
    assert np.array_equal(trained.family.modes, family.modes)
    exact = trained.estimate(*prompts(family, pairs=8)).coefficients
    assert float(jnp.mean((exact - TRUTH) ** 2)) <= 1e-20


def test_a_prompt_that_does_not_determine_the_coefficients_is_told():
    """The wave of a quadrant family that vanishes outside one quadrant shows nothing of the others."""
    family = FAMILIES["interval"]
    states, loads = prompts(family, pairs=1)
    states = states.at[3].set(0.0)
    encoder = WeakFormEncoder.from_family(family)
    with pytest.raises(ValueError, match=r"do not determine.*Failed: 1 of 12 prompts, at index 3.*condition number"):
        encoder.estimate(states, loads)
    found = encoder.estimate(states, loads, throw=False)
    assert jnp.isnan(found.coefficients[3]).all()
    assert not jnp.isnan(found.coefficients[4]).any()
    assert jnp.isinf(found.condition[3])
    assert (found.result == RESULTS.rank_deficient).tolist() == [task == 3 for task in range(12)]


def test_a_ridge_admits_prompts_of_one_direction():
    family = ParametricDiffusion(LINE, jnp.concatenate([cosine_modes(LINE)[:1]] * 2))
    truth = jnp.array([[0.5, 0.25]])
    pair = draw_prompts(family.operators(truth), pairs=4, key=jax.random.key(0))
    encoder = WeakFormEncoder.from_family(family)
    with pytest.raises(ValueError, match="ridge"):
        encoder.estimate(*pair)
    np.testing.assert_allclose(encoder.estimate(*pair, ridge=1e-9).coefficients, [[0.375, 0.375]], atol=1e-6)


def test_values_that_are_not_finite_are_told():
    family = FAMILIES["interval"]
    states, loads = prompts(family, pairs=2)
    loads = loads.at[1, 0, 3].set(jnp.nan)
    encoder = WeakFormEncoder.from_family(family)
    with pytest.raises(ValueError, match=r"NaN or infinite.*at index 1"):
        encoder.estimate(states, loads)
    found = encoder.estimate(states, loads, throw=False)
    assert (found.result == RESULTS.not_finite).tolist() == [task == 1 for task in range(12)]
    assert project_to_box(found.coefficients)[1] >= 1


def test_projection_counts_the_tasks_it_moves():
    projected, moved = project_to_box(jnp.array([[0.5, -3.0], [0.0, 1.0], [2.0, 2.0]]), radius=1.0)
    assert projected.tolist() == [[0.5, -1.0], [0.0, 1.0], [1.0, 1.0]]
    assert int(moved) == 2


def test_single_precision_and_maps():
    grid = interval_grid(15, dtype=jnp.float32)
    family = ParametricDiffusion(grid, cosine_modes(grid))
    encoder = WeakFormEncoder.from_family(family)
    pair = draw_prompts(family.operators(TRUTH.astype(jnp.float32)), pairs=8, key=jax.random.key(0))
    found = encoder.estimate(*pair)
    assert found.coefficients.dtype == jnp.float32
    assert float(jnp.abs(found.coefficients - TRUTH.astype(jnp.float32)).max()) <= 1e-3
    mapped = jax.vmap(lambda states, loads: encoder.estimate(states[None], loads[None]).coefficients[0])(*pair)
    np.testing.assert_allclose(mapped, found.coefficients, rtol=1e-3, atol=1e-4)


def test_bad_input_is_refused(unchecked):
    family = FAMILIES["interval"]
    encoder = WeakFormEncoder.from_family(family)
    states, loads = prompts(family, pairs=2)
    for function in (encoder.tokens, encoder.estimate, lambda u, f: encoder.rollout(u, f, depth=1)):
        with pytest.raises(ValueError, match="at least one pair"):
            function(states[:, :0], loads[:, :0])
        with pytest.raises(ValueError, match=r"got \(12, 2, 15\) and \(12, 1, 15\)"):
            function(states, loads[:, :1])
        with pytest.raises(ValueError, match="float32"):
            function(states.astype(jnp.float32), loads)
    with pytest.raises(ValueError, match="ridge"):
        encoder.estimate(states, loads, ridge=-1.0)
    with pytest.raises(ValueError, match="at least 4 unknowns; got 3"):
        WeakFormEncoder.from_family(ParametricDiffusion(small := interval_grid(3), cosine_modes(small)))
    with pytest.raises(ValueError, match="got 'ones'"):
        WeakFormEncoder.from_family(family, weights="ones")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"shape \(15, 15\)"):
        eqx.tree_at(lambda encoder: encoder.weight_root, encoder, jnp.eye(14)).__check_init__()
    with pytest.raises(ValueError, match="at least one pass; got 0"):
        encoder.estimate(states, loads, passes=0)
    with pytest.raises(ValueError, match=r"parameters of shape \(12, 4\)"):
        encoder.tokens(states, loads, TRUTH[:3])
    with pytest.raises(ValueError, match="dtype of its family"):
        eqx.tree_at(lambda encoder: encoder.weight_root, encoder, jnp.eye(15, dtype=jnp.float32)).__check_init__()
    with pytest.raises(ValueError, match="at least one pair; got 0"):
        prompts(family, pairs=0)
    with pytest.raises(ValueError, match="radius"):
        project_to_box(TRUTH, radius=-1.0)

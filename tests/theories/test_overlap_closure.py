"""One spectrum, many risks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.certificates import order_parameters
from jaxsolve.evidence import Result, evaluate
from jaxsolve.theories.overlap_closure import OverlapClosure

THEORY = OverlapClosure.quick()


def test_all_preconditioners_share_eigenvalues_and_singular_values():
    expected = np.sort(0.9 / np.asarray(THEORY.eigenvalues))
    for preconditioner in THEORY.preconditioners:
        np.testing.assert_allclose(np.linalg.eigvalsh(preconditioner), expected, rtol=1e-12)
        np.testing.assert_allclose(np.linalg.svd(preconditioner)[1][::-1], expected, rtol=1e-12)


def test_mixed_traces_tell_what_the_spectrum_does_not():
    grid, size = THEORY.grid(), len(THEORY.eigenvalues)
    operator = jnp.diag(THEORY.eigenvalues)[None]
    measured = THEORY.sample(grid, key=jax.random.key(0))["risk"].value[:, 0]
    for preconditioner, risk in zip(THEORY.preconditioners, measured, strict=True):
        found = order_parameters(preconditioner, operator, jnp.eye(size))
        np.testing.assert_allclose(1 - 2 * found.residual_overlap + found.residual_energy, risk, rtol=1e-12)


def test_the_reversed_order_has_the_risk_of_its_pairs():
    step = 0.9 * np.linspace(0.1, 1, 16) / np.linspace(1, 0.1, 16)
    measured = THEORY.sample(THEORY.grid(), key=jax.random.key(0))["risk"].value[-1]
    np.testing.assert_allclose(measured, [np.mean((1 - step) ** 2), np.mean((1 - step) ** 8)], rtol=1e-12)


@pytest.mark.parametrize(("smallest", "result"), [(0.1, Result.AGREES), (0.9, Result.DISAGREES)])
def test_it_takes_a_spread_of_eigenvalues(smallest, result):
    outcome = evaluate(OverlapClosure.quick(smallest=smallest), key=jax.random.key(0))
    assert outcome.verdicts["risk"].result is result

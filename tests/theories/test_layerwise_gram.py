"""The layerwise Gram identity: its experiment, its options and how much it resolves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.evidence import Result, evaluate, judge
from jaxsolve.theories.layerwise_gram import LayerwiseGram, _jacobian, _outputs

KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def evaluation():
    return evaluate(LayerwiseGram.quick(), key=KEY)


def test_every_kernel_agrees_to_twelve_digits(evaluation):
    assert evaluation.grid.tolist() == [1, 2, 3, 6]
    for name, verdict in evaluation.verdicts.items():
        assert verdict.result is Result.AGREES
        assert verdict.discrepancy < 1e-12, name
        assert evaluation.pairs[name].predicted.value.shape == (4, 60, 60)


def test_the_three_kernels_are_different_statements(evaluation):
    exact, sequential, direct = (np.asarray(pair.predicted.value) for pair in evaluation.pairs.values())
    assert np.allclose(exact, exact.transpose(0, 2, 1))
    for kernel in (sequential, direct):
        asymmetry = np.linalg.norm(kernel - kernel.transpose(0, 2, 1), axis=(1, 2)) / np.linalg.norm(
            kernel, axis=(1, 2)
        )
        assert (asymmetry > 0.05).all()
    assert not np.allclose(sequential[1:], direct[1:])


def test_the_counterfeit_is_found_out_by_every_observable(evaluation):
    theory = LayerwiseGram.quick()
    measured = {name: pair.measured for name, pair in evaluation.pairs.items()}
    fake = judge(theory, evaluation.grid, theory.counterfeit().predict(evaluation.grid), measured)
    for verdict in fake.verdicts.values():
        assert verdict.result is Result.DISAGREES
        assert verdict.discrepancy > 0.1


def test_biases_are_part_of_the_identity():
    theory = LayerwiseGram.quick(depths=(2,), examples=3, use_bias=True)
    assert all(verdict.discrepancy < 1e-12 for verdict in evaluate(theory, key=KEY).verdicts.values())


def test_the_instance_has_a_seed_of_its_own():
    first, again, other = (LayerwiseGram.quick(depths=(1,), instance_seed=seed) for seed in (1, 1, 2))
    assert jnp.array_equal(first.weights[0][0], again.weights[0][0])
    assert not jnp.array_equal(first.weights[0][0], other.weights[0][0])


@pytest.mark.parametrize("name", ["feedback_alignment", "direct_feedback_alignment"])
def test_the_experiment_changes_the_way_back_alone(name):
    """Outputs are those of the network, and with transposed weights the way back is backpropagation."""
    theory = LayerwiseGram.quick(depths=(1,), examples=3)
    parameters = (theory.weights[0], None)
    transposed = (theory.weights[0][1].T,)
    outputs = _outputs("backprop", parameters, (), theory.inputs)
    assert jnp.array_equal(_outputs(name, parameters, theory.feedback[0], theory.inputs), outputs)
    exact = _jacobian("backprop", parameters, (), theory.inputs)
    np.testing.assert_allclose(_jacobian(name, parameters, transposed, theory.inputs), exact, rtol=0, atol=1e-14)
    other = _jacobian(name, parameters, theory.feedback[0], theory.inputs)
    assert float(jnp.abs(other - exact).max()) > 0.1

"""Erosion of a convolutional network: the experiment, and what it resolves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.evidence import Result, evaluate, judge
from jaxsolve.feedback import MLP, Backprop, ConvolutionalNetwork
from jaxsolve.theories.convolutional_erosion import CONVOLUTIONS, ConvolutionalErosion, _squared_norms


@pytest.fixture(scope="module")
def evaluation():
    return evaluate(ConvolutionalErosion.quick(), key=jax.random.key(1))


def test_the_mean_erosion_is_the_hidden_share(evaluation):
    for pair in evaluation.pairs.values():
        share = np.asarray(pair.predicted.value)
        assert ((share > 0.05) & (share < 0.5)).all()
        score = (np.asarray(pair.measured.value) - share) / np.asarray(pair.measured.standard_error)
        assert (np.abs(score) < 4).all()
        assert (np.asarray(pair.measured.standard_error) < 0.03 * share.max()).all()


def test_the_counterfeit_is_found_out(evaluation):
    theory = ConvolutionalErosion.quick()
    measured = {name: pair.measured for name, pair in evaluation.pairs.items()}
    fake = judge(theory, evaluation.grid, theory.counterfeit().predict(evaluation.grid), measured)
    assert {verdict.result for verdict in fake.verdicts.values()} == {Result.DISAGREES}


def test_images_are_pooled_and_standardised():
    theory = ConvolutionalErosion.quick(initialisations=1)
    images = np.asarray(theory.images)
    assert abs(images.mean()) < 1e-12
    assert abs(images.std() - 1) < 1e-12
    assert images.shape == (16, 196)
    corners = images.reshape(16, 14, 14)[:, [0, 0, -1, -1], [0, -1, 0, -1]]
    assert np.allclose(corners, images.min())


def test_the_norm_of_the_output_layer_needs_no_convolution():
    """The last layer alone is a linear map of the features below it."""
    theory = ConvolutionalErosion.quick(initialisations=1)
    norms = _squared_norms(theory.weights, theory.images, theory.targets)
    network = ConvolutionalNetwork([weight[0] for weight in theory.weights], convolutions=CONVOLUTIONS)
    features = jax.jit(lambda network: network.forward(theory.images).activations[-1])(network)
    last = MLP([network.weights[-1]])
    forward = last.forward(features)
    cotangent = (jax.nn.softmax(forward.outputs) - theory.targets) / 16
    speed = Backprop().speed(last, forward, cotangent)
    assert float(norms[0, -1]) == pytest.approx(float(speed), rel=1e-12)
    assert jnp.all(norms > 0)

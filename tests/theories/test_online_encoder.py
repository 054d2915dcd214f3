"""The mean of online descent: sixteen runs lie within a hundredth of it, and it is not the population curve."""

import jax
import numpy as np

from jaxsolve.evidence import evaluate
from jaxsolve.theories.online_encoder import OnlineEncoder


def test_sixteen_runs_lie_within_a_hundredth_of_the_recursion():
    theory = OnlineEncoder.quick(size=32, inputs=8, batch=512, steps=60, points=6, noise_variance=4e-4)
    pair = evaluate(theory, key=jax.random.key(1), replicates=16).pairs["risk"]
    assert (np.abs(pair.measured.value / pair.predicted.value - 1) < 0.01).all()


def test_the_printed_ratio_is_the_predicted_one_within_the_scatter_of_a_run():
    theory = OnlineEncoder.full()
    ratio = float(theory.predict(theory.grid())["ratio"].value[-1])
    assert abs(ratio - 1.0005069) < 1e-7
    assert abs(ratio - 1.0005116697) < 5 * 3.4e-5

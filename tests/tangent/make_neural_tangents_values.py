"""Writes ``neural_tangents_values.npz``: kernels and predictions of another library, for tests that compare with it.

Made with Python 3.11.7, neural-tangents 0.6.5 (Apache 2.0), jax and jaxlib 0.4.23, NumPy 1.26.4 and SciPy 1.12.0, in
float64 on a CPU; that library does not run with newer releases of jax. To make the file again, install these versions
into an environment of their own and run

    python make_neural_tangents_values.py

All inputs are drawn here with NumPy and stored beside the results.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import neural_tangents as nt
import numpy as np
from neural_tangents import stax

jax.config.update("jax_enable_x64", True)

HIDDEN_GAIN, OUTPUT_GAIN, BIAS_VARIANCE = 1.7, 0.6, 0.3
LEARNING_RATE, TIMES = 0.8, (0.0, 1.0, 30.0)
NETWORKS = {
    "relu_1": (stax.Relu, 1, None),
    "relu_3_bias": (stax.Relu, 3, BIAS_VARIANCE**0.5),
    "erf_2": (stax.Erf, 2, None),
    "erf_2_bias": (stax.Erf, 2, BIAS_VARIANCE**0.5),
}


def infinite(activation, depth, bias):
    hidden = [stax.Dense(1, HIDDEN_GAIN**0.5, bias), activation()] * depth
    return stax.serial(*hidden, stax.Dense(1, OUTPUT_GAIN**0.5, bias))[2]


def main():
    random = np.random.default_rng(0)
    train, test, targets = (random.standard_normal(shape) for shape in ((6, 5), (3, 5), (6, 2)))
    start, test_start = random.standard_normal((6, 2)), random.standard_normal((3, 2))
    weights = [random.standard_normal(shape) for shape in ((7, 5), (6, 7), (2, 6))]
    stored = {"train": train, "test": test, "targets": targets, "start": start, "test_start": test_start}
    stored |= {f"weights_{layer}": weight for layer, weight in enumerate(weights, 1)}
    for name, network in NETWORKS.items():
        kernel = infinite(*network)
        for kind in ("nngp", "ntk"):
            stored[f"{name}_{kind}"] = kernel(train, None, kind)
            stored[f"{name}_{kind}_cross"] = kernel(test, train, kind)

    def outputs(parameters, inputs):
        for weight in parameters[:-1]:
            inputs = jnp.tanh(inputs @ weight.T)
        return inputs @ parameters[-1].T

    stored["empirical"] = nt.empirical_ntk_fn(outputs, trace_axes=())(train, None, weights)

    predict = nt.predict.gradient_descent_mse(stored["relu_3_bias_ntk"], targets, learning_rate=LEARNING_RATE)
    found = [predict(time, start, test_start, stored["relu_3_bias_ntk_cross"]) for time in (*TIMES, None)]
    stored["predicted_train"], stored["predicted_test"] = (np.stack(part) for part in zip(*found, strict=True))
    path = Path(__file__).with_name("neural_tangents_values.npz")
    np.savez_compressed(path, **{name: np.asarray(value) for name, value in stored.items()})


if __name__ == "__main__":
    main()

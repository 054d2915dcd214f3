"""Kernels of any function, against explicit Jacobians and against the layerwise identity."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.tangent import empirical, empirical_operator, kernel

from .test_kernel import problem, relative

RANDOM = np.random.default_rng(8)
TIED = {"square": jnp.asarray(RANDOM.standard_normal((5, 5))), "last": jnp.asarray(RANDOM.standard_normal((2, 5)))}
INPUTS = jnp.asarray(RANDOM.standard_normal((7, 5)))


def tied(parameters, example):
    hidden = jnp.tanh(parameters["square"] @ jnp.tanh(parameters["square"] @ example))
    return parameters["last"] @ hidden


def rows_of(function, parameters, inputs):
    found = jax.jacrev(lambda parameters: jax.vmap(lambda one: function(parameters, one))(inputs).ravel())(parameters)
    return jnp.concatenate([leaf.reshape(leaf.shape[0], -1) for leaf in jax.tree.leaves(found)], axis=1)


@pytest.mark.parametrize("block", [None, 1, 3, 50])
def test_a_parameter_that_is_used_twice(block):
    rows = rows_of(tied, TIED, INPUTS)
    assert relative(empirical(tied, TIED, INPUTS, block=block), rows @ rows.T) < 1e-14
    cross = empirical(tied, TIED, INPUTS, other_inputs=INPUTS[:4], block=block)
    assert relative(cross, rows @ rows[:8].T) < 1e-14


def test_a_perceptron_has_its_layerwise_kernel():
    network, inputs = problem((5, 8, 7, 3), use_bias=True)
    found = empirical(lambda network, example: network(example[None])[0], network, inputs, block=2)
    assert relative(found, kernel(network, inputs)) < 1e-14


def test_an_equinox_model_with_static_fields_and_structured_inputs():
    model = eqx.nn.MLP(3, 2, 6, 1, activation=jnp.tanh, key=jax.random.key(0))
    inputs = {"first": INPUTS[:, :2], "second": INPUTS[:, 2:3]}

    def function(model, example):
        return model(jnp.concatenate([example["first"], example["second"]]))

    trainable, fixed = eqx.partition(model, eqx.is_inexact_array)
    rows = rows_of(lambda part, one: function(eqx.combine(part, fixed), one), trainable, inputs)
    assert relative(empirical(function, model, inputs, block=3), rows @ rows.T) < 1e-14


def test_the_operator_multiplies_by_the_kernel():
    found, expected = empirical_operator(tied, TIED, INPUTS), empirical(tied, TIED, INPUTS)
    assert relative(found.as_matrix(), expected) < 1e-14
    assert relative(jax.jit(lambda vector: found.mv(vector))(jnp.ones(14)), expected @ jnp.ones(14)) < 1e-14


def test_two_blocks_of_rows_are_the_most_there_is():
    wide = {"square": jnp.zeros((90, 90)), "last": jnp.zeros((2, 90))}
    inputs = jnp.zeros((64, 90))
    compiled = jax.jit(lambda parameters: empirical(tied, parameters, inputs, block=4)).lower(wide).compile()
    rows = 8 * 8 * (90 * 90 + 2 * 90)
    assert compiled.memory_analysis().temp_size_in_bytes < 5 * rows < 8 * 128 * (90 * 90)


def test_no_examples():
    assert empirical(tied, TIED, INPUTS[:0]).shape == (0, 0)
    assert empirical(tied, TIED, INPUTS, other_inputs=INPUTS[:0]).shape == (14, 0)


def test_misfits_are_refused(unchecked):
    with pytest.raises(ValueError, match="a vector of outputs"):
        empirical(lambda parameters, example: example[:, None] * parameters[None], jnp.ones(5), INPUTS)
    with pytest.raises(ValueError, match="one leading axis"):
        empirical(tied, TIED, (INPUTS, INPUTS[:2]))
    with pytest.raises(ValueError, match="no floating-point array"):
        empirical(lambda parameters, example: example, 3, INPUTS)
    with pytest.raises(ValueError, match="got 0"):
        empirical(tied, TIED, INPUTS, block=0)
    with pytest.raises(ValueError, match=r"jaxsolve\.tangent\.operator"):
        jax.eval_shape(lambda data: empirical(tied, TIED, data), jax.ShapeDtypeStruct((10**7, 5), jnp.float64))

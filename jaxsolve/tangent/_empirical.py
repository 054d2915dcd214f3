"""Tangent kernels of any function of parameters and inputs."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax
from jaxtyping import Array, Float, PyTree

from ._kernel import tiles
from ._memory import check_memory

BLOCK_BYTES = 2**28
"""What two blocks of rows of a Jacobian may take, unless the call says otherwise."""


def empirical(
    function: Callable[[PyTree, Any], Float[Array, " outputs"]],
    parameters: PyTree,
    inputs: PyTree,
    *,
    other_inputs: PyTree | None = None,
    block: int | None = None,
) -> Float[Array, "rows columns"]:
    """The empirical tangent kernel `K = J J^T` of any function, by blocks of examples.

    Row `n n_L + c` of `J` is the gradient of output `c` at example `n` with respect to all inexact arrays in
    ``parameters``. A parameter that is used several times is one parameter, and its gradients are added. Nothing is
    divided by the number of examples. At no time are there more than two blocks of rows of `J`. For multilayer
    perceptrons [`kernel`][] is ten to a hundred times cheaper.

    Parameters
    ----------
    function
        Outputs of one example, a vector, from parameters and the example. An Equinox module is a function of itself:
        ``lambda model, x: model(x)``.
    parameters
        A pytree; leaves that are not inexact arrays are held fixed.
    inputs
        A pytree of arrays whose leading axis is that of the examples.
    other_inputs
        The examples of the second index; by default those of the first, and then only blocks on and above the diagonal
        are computed.
    block
        Examples per block; by default as many as keep two blocks of rows within 256 MiB.

    Returns
    -------
    Array
        `(N n_L, M n_L)`.

    Raises
    ------
    ValueError
        For inputs without a common leading axis, a function that does not return a vector, parameters without inexact
        arrays, a block below one, and a kernel that is larger than the memory that is free.

    >>> empirical(lambda w, x: w[None] * x, jnp.array(3.0), jnp.array([[1.0], [2.0]])).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    symmetric = other_inputs is None
    others = inputs if symmetric else other_inputs
    rows, columns = _examples(inputs), _examples(others)
    outputs, dtype = _outputs(function, parameters, inputs)
    width = sum(leaf.size for leaf in jax.tree.leaves(_trainable(parameters)))
    if block is None:
        block = max(1, BLOCK_BYTES // (2 * outputs * width * dtype.itemsize))
    elif block < 1:
        raise ValueError(f"A block has at least one example; got {block}.")
    shape = (rows * outputs, columns * outputs)
    jacobians = 2 * min(block, max(rows, columns)) * outputs * width
    check_memory((math.prod(shape) + jacobians) * dtype.itemsize, shape)
    if not rows or not columns:
        return jnp.zeros(shape, dtype)
    return _blocks(function, parameters, inputs, others, symmetric, block, outputs)


def empirical_operator(
    function: Callable[[PyTree, Any], Float[Array, " outputs"]], parameters: PyTree, inputs: PyTree
) -> lineax.FunctionLinearOperator:
    """The kernel of [`empirical`][] as a Lineax operator that never forms it or a Jacobian: `K v = J (J^T v)`.

    The function is linearised once, when the operator is made; what that keeps are its leaves.

    Raises
    ------
    ValueError
        As [`empirical`][] does.

    >>> operator = empirical_operator(lambda w, x: w[None] * x, jnp.array(3.0), jnp.array([[1.0], [2.0]]))
    >>> operator.mv(jnp.array([1.0, 1.0])).tolist()
    [3.0, 6.0]
    """
    _outputs(function, parameters, inputs)
    trainable, fixed = eqx.partition(parameters, eqx.is_inexact_array)
    values, push_forward = jax.linearize(
        lambda trainable: _all_outputs(function, eqx.combine(trainable, fixed), inputs).ravel(), trainable
    )
    pull_back = jax.linear_transpose(push_forward, trainable)
    structure = jax.ShapeDtypeStruct(values.shape, values.dtype)
    return lineax.FunctionLinearOperator(
        lambda vector: push_forward(*pull_back(vector)), structure, lineax.positive_semidefinite_tag
    )


@eqx.filter_jit
def _blocks(function, parameters, inputs, others, symmetric, block, outputs):
    trainable, fixed = eqx.partition(parameters, eqx.is_inexact_array)

    def jacobian(examples, start, width):
        part = jax.tree.map(partial(jax.lax.dynamic_slice_in_dim, start_index=start, slice_size=width), examples)
        one = jax.jacrev(lambda trainable, example: function(eqx.combine(trainable, fixed), example))
        leaves = jax.tree.leaves(jax.vmap(one, (None, 0))(trainable, part))
        return [leaf.reshape(width * outputs, -1) for leaf in leaves]

    rows, columns = _examples(inputs), _examples(others)
    (height, tops), (width, lefts) = tiles(rows, block), tiles(columns, block)
    if len(tops) == len(lefts) == 1:
        upper = jacobian(inputs, 0, height)
        return _inner_products(upper, upper if symmetric else jacobian(others, 0, width))

    def fill_row(index, total):
        top = jnp.asarray(tops)[index]
        upper = jacobian(inputs, top, height)

        def fill(index, total):
            left = jnp.asarray(lefts)[index]
            tile = _inner_products(upper, jacobian(others, left, width))
            if symmetric:
                total = jax.lax.dynamic_update_slice(total, tile.T, (left * outputs, top * outputs))
            return jax.lax.dynamic_update_slice(total, tile, (top * outputs, left * outputs))

        return jax.lax.fori_loop(index if symmetric else 0, len(lefts), fill, total)

    dtype = jax.eval_shape(lambda: _inner_products(*2 * (jacobian(inputs, 0, 1),))).dtype
    return jax.lax.fori_loop(0, len(tops), fill_row, jnp.zeros((rows * outputs, columns * outputs), dtype))


def _inner_products(left: Sequence[Array], right: Sequence[Array]) -> Array:
    products = [jnp.matmul(one, other.T, precision="highest") for one, other in zip(left, right, strict=True)]
    total = products[0]
    for product in products[1:]:
        total = total + product
    return total


def _all_outputs(function, parameters, inputs):
    return jax.vmap(function, (None, 0))(parameters, inputs)


def _trainable(parameters: PyTree) -> PyTree:
    return eqx.filter(parameters, eqx.is_inexact_array)


def _examples(inputs: PyTree) -> int:
    shapes = [jnp.shape(leaf) for leaf in jax.tree.leaves(inputs)]
    lengths = {shape[0] for shape in shapes if shape}
    if len(lengths) != 1 or not all(shapes):
        raise ValueError(f"inputs holds arrays with one leading axis over examples; got shapes {shapes}.")
    return lengths.pop()


def _outputs(function, parameters, inputs) -> tuple[int, Any]:
    """Number of outputs of one example, and their dtype."""
    _examples(inputs)
    if not jax.tree.leaves(_trainable(parameters)):
        raise ValueError("parameters holds no floating-point array to differentiate with respect to.")
    example = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(jnp.shape(leaf)[1:], jnp.result_type(leaf)), inputs)
    found = eqx.filter_eval_shape(function, parameters, example)
    if not isinstance(found, jax.ShapeDtypeStruct) or len(found.shape) != 1:
        raise ValueError(f"The function returns a vector of outputs for one example; got {found}.")
    if not jnp.issubdtype(found.dtype, jnp.floating):
        raise ValueError(f"The function returns floating-point outputs; got {found.dtype}.")
    return found.shape[0], found.dtype

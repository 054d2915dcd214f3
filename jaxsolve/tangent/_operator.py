"""Products with a tangent kernel that is never formed."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax
from jaxtyping import Array, Float, Num

from .._types import ArrayLike
from ..feedback import AbstractBackwardRule, AbstractNetwork, Backprop
from ._finite import check_finite


def operator(
    network: AbstractNetwork,
    inputs: Num[ArrayLike, "examples features"],
    rule: AbstractBackwardRule = Backprop(),
) -> lineax.FunctionLinearOperator:
    """The tangent kernel of [`kernel`][] as a Lineax operator: `K v` in the time of one training step.

    `K v = J (J̃^T v)`: the rule turns `v`, a cotangent for every example and output, into errors `u_l` of the layers,
    each layer mixes the examples, `q_l = (H_{l−1} + β) u_l` with `H_{l−1} = h_{l−1} h_{l−1}^T`, and the network is run
    forward once along its derivative,

        s_1 = q_1,   s_{l+1} = W_{l+1} (φ'_l ⊙ s_l) + q_{l+1},   K v = s_L.

    Activations and gates are evaluated once, when the operator is made, and are its leaves. A layer with
    `N < 2 n_{l−1}` keeps its `N × N` Gram matrix; a layer with more examples multiplies by `h_{l−1}^T` and `h_{l−1}` in
    turn. Memory is `N Σ n_l`, the Gram matrices and, of the size of weights, one matrix at a time.

    Parameters
    ----------
    network, inputs, rule
        As in [`kernel`][].

    Returns
    -------
    operator
        On vectors of length `N n_L`, in the order `n n_L + c`. For backpropagation it is tagged positive semidefinite;
        for other rules it has no tag, and ``operator.T`` multiplies by `K^T`.

    Raises
    ------
    ValueError
        Where the inputs or the matrices of the rule do not fit the network, and for parameters that are not finite
        (outside of a trace).

    >>> network = MLP.initialise((3, 5, 2), key=jax.random.key(0))
    >>> product = operator(network, jnp.eye(3)).mv(jnp.ones(6))
    >>> product.shape
    (6,)
    """
    check_finite(network, rule)
    forward = network.forward(inputs)
    outputs = forward.outputs
    hidden = forward.activations
    if network.biases is not None:
        hidden = tuple(jnp.concatenate([layer, jnp.ones_like(layer[:, :1])], axis=1) for layer in hidden)
    mixers = tuple(_mixer(layer) for layer in hidden)
    structure = jax.ShapeDtypeStruct((outputs.size,), outputs.dtype)
    tags = lineax.positive_semidefinite_tag if type(rule) is Backprop else ()
    multiply = partial(_multiply, network, forward, rule, mixers)
    return lineax.FunctionLinearOperator(multiply, structure, tags)


def _mixer(hidden):
    examples, features = hidden.shape
    return (jnp.matmul(hidden, hidden.T, precision="highest"),) if examples < 2 * features else (hidden.T, hidden)


def _multiply(network, forward, rule, mixers, vector: Float[Array, " size"]) -> Float[Array, " size"]:
    product = partial(jnp.matmul, precision="highest")
    errors = rule.deltas(network, forward, vector.reshape(forward.outputs.shape))
    gates = (*forward.gates, None)
    change = None
    for weight, gate, mixer, error in zip(network.weights, gates, mixers, errors, strict=True):
        mixed = error
        for factor in mixer:
            mixed = product(factor, mixed)
        change = mixed if change is None else mixed + product(change, weight.T)
        change = change if gate is None else change * gate
    assert change is not None
    return change.ravel()


def choose_form(network: AbstractNetwork, examples: int, products: int) -> str:
    """Whether ``products`` products with a kernel are cheaper from the whole matrix or by [`operator`][].

    A product costs about `8 P N` operations without the matrix, for `P` parameters, and reads `(N n_L)²` numbers with
    it; those are as expensive as ten operations each. Where `P < 0.8 N n_L²` the matrix never pays. Elsewhere it pays
    from the number of products at which these operations have paid for making the matrix, `Σ_l 2 (N n_L)² n_l`, half of
    that for its symmetry: between 4 and 25 products on one core of a CPU in double precision.

    >>> network = MLP.initialise((16, 64, 64, 10), key=jax.random.key(0))
    >>> choose_form(network, 512, 10_000), choose_form(network, 16, 10_000), choose_form(network, 16, 1)
    ('matrix_free', 'dense', 'matrix_free')
    """
    parameters = sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(network, eqx.is_array)))
    rows = examples * network.widths[-1]
    if parameters < 0.8 * rows * network.widths[-1]:
        return "matrix_free"
    saved = 8 * parameters * examples - 10 * rows**2
    make = sum(width for width in network.widths[1:-1]) * rows**2
    return "dense" if saved * products > make else "matrix_free"

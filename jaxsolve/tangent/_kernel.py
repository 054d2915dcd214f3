"""Tangent kernels of networks by the layerwise Gram identity."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from .._types import ArrayLike
from ..feedback import MLP, AbstractBackwardRule, Backprop, ForwardPass


@eqx.filter_jit
def kernel(
    network: MLP, inputs: Num[ArrayLike, "examples features"], rule: AbstractBackwardRule
) -> Float[Array, "size size"]:
    """Tangent kernel `K = J J̃^T` of a backward rule, without forming a Jacobian.

    Row `n n_L + c` of `J` is the gradient of output `c` at example `n` (backpropagation); the same row of `J̃` is
    what ``rule`` computes in its place. An update of the parameters by `−η/N` times the direction of the rule for
    the residual `r` changes the outputs, to first order, by `−(η/N) K r`: nothing is divided by `N` in `K`.

    The kernel is a sum over layers,

    `K[(n,c),(m,c')] = Σ_l (⟨h_{l−1}(n), h_{l−1}(m)⟩ + β) ⟨δ_l^{n,c}, δ̃_l^{m,c'}⟩`,

    with `δ_l^{n,c}` the error of layer `l` for the output cotangent `e_c` at example `n`, under backpropagation and
    `δ̃` under the rule, and `β = 1` for a network with biases, else 0. The output layer is
    `(H_{L−1} H_{L−1}^T + β) ⊗ I` for every rule. For backpropagation this is the empirical neural tangent kernel
    (Jacot, Gabriel and Hongler, 2018); for other rules it is not symmetric: the first index belongs to
    backpropagation, the second to the rule.

    Memory is a few kernels and `N n_L Σ n_l` numbers. A value that is not finite in one example stays in the rows
    and columns of that example.

    Parameters
    ----------
    network
        Every layer counts as parameters of its own.
    inputs
        One example per row; there may be none.
    rule
        [`Backprop`][jaxsolve.feedback.Backprop] or an alternative.

    Returns
    -------
    Array
        `(N n_L, N n_L)`.

    Raises
    ------
    ValueError
        Where the inputs or the matrices of the rule do not fit the network.

    >>> import jax
    >>> from jaxsolve.feedback import FeedbackAlignment
    >>> network = MLP.initialise((3, 5, 2), key=jax.random.key(0))
    >>> rule = FeedbackAlignment.sample(network, key=jax.random.key(1))
    >>> kernel(network, jnp.eye(3), rule).shape
    (6, 6)
    """
    forward = network.forward(inputs)
    examples, outputs = forward.outputs.shape
    one_hot = jnp.eye(outputs, dtype=network.dtype)[None, :, :]
    exact = Backprop().deltas(network, forward, one_hot)
    alternative = rule.deltas(network, forward, one_hot)
    total = _gram(network, forward, -1)[:, None, :, None] * jnp.eye(outputs, dtype=network.dtype)[None, :, None, :]
    for layer in range(network.depth):
        shape = (examples * outputs, network.widths[layer + 1])
        first, second = (deltas[layer].reshape(shape) for deltas in (exact, alternative))
        errors = jnp.matmul(first, second.T, precision="highest").reshape(examples, outputs, examples, outputs)
        total = total + _gram(network, forward, layer)[:, None, :, None] * errors
    return total.reshape(examples * outputs, examples * outputs)


def _gram(network: MLP, forward: ForwardPass, layer: int) -> Float[Array, "examples examples"]:
    """Inner products of what the weights (and the bias) of a layer multiply."""
    hidden = forward.activations[layer]
    gram = jnp.matmul(hidden, hidden.T, precision="highest")
    return gram if network.biases is None else gram + 1

"""The part of a tangent kernel that every backward rule shares."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from .._types import ArrayLike
from ..feedback import MLP


@eqx.filter_jit
def output_kernel(network: MLP, inputs: Num[ArrayLike, "examples features"]) -> Float[Array, "size size"]:
    """Tangent kernel of the last layer alone, `K_out = (H_{L−1} H_{L−1}^T + β) ⊗ I`, the same for every rule.

    `H_{L−1}` are the activations that the last layer multiplies, and `β = 1` for a network with biases, else 0. It is
    also the mean of the kernel of feedback alignment, and of direct feedback alignment, over independent feedback
    matrices of mean zero. Rows and columns are those of [`kernel`][].

    Raises
    ------
    ValueError
        Where the inputs do not fit the network.

    >>> output_kernel(MLP([jnp.eye(2), jnp.ones((1, 2))]), jnp.array([[3.0, -4.0], [1.0, 1.0]])).tolist()
    [[9.0, 3.0], [3.0, 2.0]]
    """
    forward = network.forward(inputs)
    hidden, outputs = forward.activations[-1], forward.outputs.shape[1]
    gram = jnp.matmul(hidden, hidden.T, precision="highest")
    gram = gram if network.biases is None else gram + 1
    return jnp.kron(gram, jnp.eye(outputs, dtype=gram.dtype))

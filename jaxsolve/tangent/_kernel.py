"""Tangent kernels of networks by the layerwise Gram identity."""

from collections.abc import Sequence
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from .._types import ArrayLike
from ..feedback import AbstractBackwardRule, AbstractNetwork, Backprop, TangentFactor
from ._finite import check_finite
from ._memory import check_memory, kernel_bytes

TILE_ROWS = 256
"""About how many rows of a kernel are made at a time, so that they stay in fast memory while layers are added."""

WHOLE_ROWS = 512
"""Up to how many rows a kernel is made in one piece."""


def kernel(
    network: AbstractNetwork,
    inputs: Num[ArrayLike, "examples features"],
    rule: AbstractBackwardRule = Backprop(),
    *,
    other_inputs: Num[ArrayLike, "others features"] | None = None,
    block: int | None = None,
    out: Float[Array, "rows columns"] | None = None,
) -> Float[Array, "rows columns"]:
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

    Memory is one kernel, `N n_L Σ n_l` numbers and a few tiles; see [`kernel_bytes`][]. For backpropagation at one set
    of inputs only the tiles on and above the diagonal are computed. A value that is not finite in one example stays in
    the rows and columns of that example.

    Parameters
    ----------
    network
        Every layer counts as parameters of its own.
    inputs
        One example per row; there may be none.
    rule
        [`Backprop`][jaxsolve.feedback.Backprop] or an alternative.
    other_inputs
        The examples of the second index; the same as of the first by default.
    block
        Examples per tile; by default as many as make about 256 rows, and all of them up to 512 rows.
    out
        An array of the shape and dtype of the result whose memory is reused; it cannot be used afterwards. Filling an
        old array is faster than a new one, whose pages have to be mapped first. Ignored under ``jax.jit``.

    Returns
    -------
    Array
        `(N n_L, M n_L)`.

    Raises
    ------
    ValueError
        Where the inputs, the matrices of the rule or ``out`` do not fit the network, for a block below one, for
        parameters that are not finite (outside of a trace), and for a kernel that is larger than the memory that is
        free.

    >>> import jax
    >>> from jaxsolve.feedback import FeedbackAlignment
    >>> network = MLP.initialise((3, 5, 2), key=jax.random.key(0))
    >>> rule = FeedbackAlignment.sample(network, key=jax.random.key(1))
    >>> kernel(network, jnp.eye(3), rule).shape
    (6, 6)
    """
    check_finite(network, rule)
    inputs = jnp.asarray(inputs)
    others = inputs if other_inputs is None else jnp.asarray(other_inputs)
    outputs = network.widths[-1]
    shape = (len(inputs) * outputs, len(others) * outputs)
    check_memory(kernel_bytes(network, len(inputs), len(others)), shape)
    if block is None:
        block = max(1, round(TILE_ROWS / outputs))
        whole = max(shape) <= WHOLE_ROWS
    elif block < 1:
        raise ValueError(f"A block has at least one example; got {block}.")
    else:
        whole = block >= len(inputs)
    if whole and out is None:
        return _whole(network, inputs, others, rule)
    if out is None:
        out = jnp.zeros(shape, network.dtype)
    elif out.shape != shape or out.dtype != network.dtype:
        raise ValueError(f"out has shape {shape} and dtype {network.dtype} here; got {out.shape} and {out.dtype}.")
    if type(rule) is Backprop and other_inputs is None:
        return _symmetric((network, inputs, block), out)
    return _general((network, inputs, others, rule, block), out)


@eqx.filter_jit
def _whole(network, inputs, others, rule):
    return _product(_factors(network, inputs, Backprop()), _factors(network, others, rule), network.widths[-1])


@eqx.filter_jit(donate="all-except-first")
def _symmetric(problem, out):
    network, inputs, block = problem
    factors = _factors(network, inputs, Backprop())
    outputs = network.widths[-1]
    width, starts = tiles(len(inputs), block)
    pairs = np.array([(row, column) for row in starts for column in starts if row <= column], np.int32).reshape(-1, 2)

    def fill(index, total):
        row, column = jnp.asarray(pairs)[index]
        tile = _product(_rows(factors, row, width), _rows(factors, column, width), outputs)
        total = jax.lax.dynamic_update_slice(total, tile.T, (column * outputs, row * outputs))
        return jax.lax.dynamic_update_slice(total, tile, (row * outputs, column * outputs))

    return jax.lax.fori_loop(0, len(pairs), fill, out)


@eqx.filter_jit(donate="all-except-first")
def _general(problem, out):
    network, inputs, others, rule, block = problem
    outputs = network.widths[-1]
    exact, alternative = _factors(network, inputs, Backprop()), _factors(network, others, rule)
    width, starts = tiles(len(inputs), block)

    def fill(index, total):
        row = jnp.asarray(starts, np.int32)[index]
        tile = _product(_rows(exact, row, width), alternative, outputs)
        return jax.lax.dynamic_update_slice(total, tile, (row * outputs, jnp.zeros_like(row)))

    return jax.lax.fori_loop(0, len(starts), fill, out) if len(others) else out


def _factors(network, inputs, rule) -> tuple[TangentFactor, ...]:
    forward = network.forward(inputs)
    one_hot = jnp.eye(network.widths[-1], dtype=network.dtype)[None, :, :]
    return network.tangent_factors(forward, rule.deltas(network, forward, one_hot))


def tiles(examples: int, block: int) -> tuple[int, Sequence[int]]:
    """Examples per tile, and where tiles start; the last ones overlap where the width does not divide `N`.

    >>> tiles(7, 3)
    (3, [0, 3, 4])
    """
    if not examples:
        return 0, []
    width = min(examples, block)
    starts = [*range(0, examples - width, width), examples - width]
    return width, starts


def _rows(factors, start, width):
    return jax.tree.map(partial(jax.lax.dynamic_slice_in_dim, start_index=start, slice_size=width), factors)


def _product(left: Sequence[TangentFactor], right: Sequence[TangentFactor], outputs: int) -> Array:
    """The tile of two groups of examples, in the order `n n_L + c`."""
    product = partial(jnp.matmul, precision="highest")
    total = None
    for first, second in zip(left, right, strict=True):
        gram = None if first.hidden is None or second.hidden is None else product(first.hidden, second.hidden.T)
        term = _layer(gram, first.errors, second.errors, outputs)
        total = term if total is None else total + term
    assert total is not None
    return total.reshape(total.shape[0] * outputs, total.shape[2] * total.shape[3])


def _layer(gram, first, second, outputs):
    """One layer as `(n, c, m, c')`; where the second factor is diagonal in the outputs, ``first`` is None."""
    if first is None:
        return gram[:, None, :, None] * jnp.eye(outputs, dtype=gram.dtype)[None, :, None, :]
    rows, columns = (deltas.shape[0] * outputs for deltas in (first, second))
    left, right = first.reshape(rows, first.shape[2]), second.reshape(columns, second.shape[2])
    errors = jnp.matmul(left, right.T, precision="highest").reshape(first.shape[0], outputs, second.shape[0], outputs)
    return errors if gram is None else gram[:, None, :, None] * errors

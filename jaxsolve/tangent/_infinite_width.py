"""Kernels of fully connected networks in the limit of infinite width."""

import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from .._numerics import machine_epsilon
from .._types import ArrayLike
from ..feedback import AbstractActivation, Erf, Identity, Relu

REACH = 8.5
"""Of the quadrature, in standard deviations: less than 1e-16 of a Gaussian lies beyond."""


class InfiniteWidthKernels(eqx.Module):
    """Limits of the factors of a tangent kernel, from [`infinite_width_kernels`][]; layers `l = 1, …, L` in front.

    Attributes
    ----------
    hidden
        `⟨h_{l−1}(x), h_{l−1}(x')⟩ / n_{l−1}`: what weights multiply, per unit.
    errors
        `⟨δ_l(x), δ_l(x')⟩` for the cotangent of one output; that of the last layer is 1.
    gains
        `hidden_gain, …, output_gain` of `W_1, …, W_L`.
    bias_variance
        Of the entries of all biases; ``None`` for networks without.
    """

    hidden: Float[Array, "layers rows columns"]
    errors: Float[Array, "layers rows columns"]
    gains: Float[Array, " layers"]
    bias_variance: Float[Array, ""] | None

    @property
    def covariance(self) -> Float[Array, "rows columns"]:
        """`E[f_c(x) f_c(x')]` over initialisations: the kernel of the Gaussian process that an output becomes."""
        covariance = self.gains[-1] * self.hidden[-1]
        return covariance if self.bias_variance is None else covariance + self.bias_variance

    @property
    def tangent(self) -> Float[Array, "rows columns"]:
        """`Σ_l (g_l h_l + σ_b²) e_l`, the neural tangent kernel (Jacot, Gabriel and Hongler, 2018).

        That of the parametrisation in which the trained numbers have variance 1 and `√(g_l / n_{l−1})` or `σ_b` stands
        in front of them. It belongs to one output; between different outputs the kernel is zero.
        """
        scaled = self.gains[:, None, None] * self.hidden
        scaled = scaled if self.bias_variance is None else scaled + self.bias_variance
        return (scaled * self.errors).sum(axis=0)

    def standard_tangent(self, widths: Sequence[int]) -> Float[Array, "rows columns"]:
        """`Σ_l (n_{l−1} h_l + β) e_l`, to leading order what [`kernel`][jaxsolve.tangent.kernel] gives per output.

        There the weights themselves are trained, so that the term of a layer grows with the width below it; `β` is 1
        with biases, else 0. The tangent kernel of [`InfiniteWidthKernels.tangent`][] has the learning rate
        `g_l / n_{l−1}` for the weights of layer `l` and `σ_b²` for biases, in units of that of the standard
        parametrisation.

        Parameters
        ----------
        widths
            `(n_0, …, n_{L−1})`, or with the number of outputs behind them.

        Raises
        ------
        ValueError
            Where there are not as many widths as layers, or one more.
        """
        layers = self.hidden.shape[0]
        if len(widths) not in (layers, layers + 1):
            raise ValueError(
                f"The kernels have {layers} layers of weights; got widths {tuple(widths)}. Give the inputs and each "
                "hidden layer."
            )
        scaled = jnp.asarray(widths[:layers], self.hidden.dtype)[:, None, None] * self.hidden
        return ((scaled if self.bias_variance is None else scaled + 1) * self.errors).sum(axis=0)


def infinite_width_kernels(
    inputs: Num[ArrayLike, "rows features"],
    others: Num[ArrayLike, "columns features"] | None = None,
    *,
    depth: int,
    activation: AbstractActivation = Relu(),
    hidden_gain: float = 2.0,
    output_gain: float = 1.0,
    bias_variance: float | None = None,
    nodes: int = 96,
) -> InfiniteWidthKernels:
    """Kernels of [`MLP.initialise`][jaxsolve.feedback.MLP.initialise] as all hidden widths go to infinity.

    With `W_l ~ N(0, g_l / n_{l−1})` and `b_l ~ N(0, σ_b²)`, pre-activations become Gaussian with the covariances

        Σ_1 = g_1 ⟨x, x'⟩ / n_0 + σ_b²,    Σ_{l+1} = g_{l+1} E[φ(u) φ(v)] + σ_b²,    (u, v) ~ N(0, Σ_l),

    and the errors of one output have the inner products `e_L = 1` and `e_l = g_{l+1} E[φ'(u) φ'(v)] e_{l+1}`.
    Expectations are closed forms for the rectifier (Cho and Saul, 2009), the error function (Williams, 1997) and the
    identity. Those of other activations are sums over an even grid of Gaussian variables, which converge geometrically
    for smooth activations, the faster the smaller the variance: with 96 nodes those of the hyperbolic tangent are
    right to 1e-14 at a variance of 2, to 1e-9 at 4 and to 1e-6 at 8.

    At finite width the kernel fluctuates by a relative `n^{−1/2}`. With one hidden layer its mean is the limit at
    every width; with more it is off by a relative `1/n`.

    Parameters
    ----------
    inputs, others
        One example per row; without ``others`` kernels are those of ``inputs`` with themselves.
    depth
        Number of hidden layers, at least 0.
    activation, hidden_gain, output_gain
        As in `MLP.initialise`.
    bias_variance
        `σ_b²`; 0 for biases that start at zero, ``None`` for a network without.
    nodes
        Of the quadrature, along each of two axes.

    Raises
    ------
    ValueError
        For inputs that do not fit, a negative depth, gain or variance, and less than two nodes.

    >>> kernels = infinite_width_kernels(jnp.eye(2), depth=1)
    >>> kernels.covariance.round(6).tolist()
    [[0.5, 0.159155], [0.159155, 0.5]]
    >>> kernels.standard_tangent((2, 100))[0].round(1).tolist()
    [50.5, 15.9]
    """
    first, second = jnp.asarray(inputs), None if others is None else jnp.asarray(others)
    if first.ndim != 2 or not first.shape[1] or (second is not None and second.shape[1:] != first.shape[1:]):
        raise ValueError(
            f"Inputs have shape (examples, features), with one number of features; got {first.shape}"
            + ("." if second is None else f" and {second.shape}.")
        )
    variances = (hidden_gain, output_gain, bias_variance or 0.0)
    if depth < 0 or nodes < 2 or min(variances) < 0:
        raise ValueError(
            "depth, gains and bias_variance are not negative, and there are two nodes at least; got "
            f"depth={depth}, hidden_gain={hidden_gain}, output_gain={output_gain}, bias_variance={bias_variance} and "
            f"nodes={nodes}."
        )
    dtype = first.dtype if jnp.issubdtype(first.dtype, jnp.floating) else jnp.asarray(0.0).dtype
    first = first.astype(dtype)
    if second is not None:
        if jnp.issubdtype(second.dtype, jnp.floating) and second.dtype != dtype:
            raise ValueError(f"Both inputs have one dtype; got {first.dtype} and {second.dtype}.")
        second = second.astype(dtype)
    gains = jnp.asarray([hidden_gain] * depth + [output_gain], dtype)
    variance = None if bias_variance is None else jnp.asarray(bias_variance, dtype)
    return _recursion(first, second, gains, variance, activation, nodes)


@eqx.filter_jit
def _recursion(inputs, others, gains, bias_variance, activation, nodes: int) -> InfiniteWidthKernels:
    dual = DUALS.get(type(activation)) or _quadrature(activation, nodes)
    second = inputs if others is None else others
    shift = 0 if bias_variance is None else bias_variance
    features = inputs.shape[1]
    hidden = [jnp.matmul(inputs, second.T, precision="highest") / features]
    left, right = ((array**2).mean(axis=1) for array in (inputs, second))
    slopes = []
    for gain in gains[:-1]:
        covariance, left, right = (gain * array + shift for array in (hidden[-1], left, right))
        if others is None:
            left = right = jnp.diagonal(covariance)
        product, slope = dual(left[:, None], right[None, :], covariance)
        left, right = (dual(array, array, array)[0] for array in (left, right))
        hidden.append(product)
        slopes.append(slope)
    errors = [jnp.ones_like(hidden[0])]
    for gain, slope in zip(gains[:0:-1], reversed(slopes), strict=True):
        errors.append(gain * slope * errors[-1])
    return InfiniteWidthKernels(jnp.stack(hidden), jnp.stack(errors[::-1]), gains, bias_variance)


def _identity(first, second, covariance):
    return covariance, jnp.ones_like(covariance)


def _relu(first, second, covariance):
    """`√(q q') (sin θ + (π − θ) cos θ) / (2π)` and `(π − θ) / (2π)`; an input of variance zero has no slope.

    Angles below `4 √ε` are not told from zero: the cosine has lost them.
    """
    there = first * second > 0
    scale = jnp.sqrt(jnp.where(there, first * second, 1))
    cosine = jnp.where(there, covariance / scale, 0)
    edge = 1 - 8 * machine_epsilon(covariance.dtype)
    inside = jnp.abs(cosine) < edge
    safe = jnp.where(inside, cosine, 0)
    angle = jnp.where(inside, jnp.arccos(safe), jnp.where(cosine > 0, 0, math.pi))
    sine = jnp.where(inside, jnp.sqrt(1 - safe**2), 0)
    straight = jnp.where(inside, cosine, jnp.sign(cosine))
    product = scale * (sine + (math.pi - angle) * straight) / (2 * math.pi)
    return jnp.where(there, product, 0), jnp.where(there, (math.pi - angle) / (2 * math.pi), 0)


def _erf(first, second, covariance):
    """`2/π arcsin(2c / √((1 + 2q)(1 + 2q')))` and `4/π ((1 + 2q)(1 + 2q') − 4c²)^{−1/2}`."""
    scale = (1 + 2 * first) * (1 + 2 * second)
    product = 2 / math.pi * jnp.arcsin(2 * covariance / jnp.sqrt(scale))
    return product, 4 / math.pi / jnp.sqrt(scale - 4 * covariance**2)


def _quadrature(activation, nodes: int):
    points = np.linspace(-REACH, REACH, nodes)
    weights = np.exp(-(points**2) / 2)

    def dual(first, second, covariance):
        """With the symmetric root of the two-by-two covariance, so that exchanging the inputs changes nothing."""
        dtype = covariance.dtype
        points_, weights_ = jnp.asarray(points, dtype), jnp.asarray(weights / weights.sum(), dtype)
        determinant = first * second - covariance**2
        root = jnp.where(determinant > 0, jnp.sqrt(jnp.where(determinant > 0, determinant, 1)), 0)
        trace = first + second + 2 * root
        scale = 1 / jnp.sqrt(jnp.where(trace > 0, trace, 1))
        upper, across, lower = (first + root) * scale, covariance * scale, (second + root) * scale

        def add(totals, node):
            point, weight = node

            def products(other):
                one, two = upper * point + across * other, across * point + lower * other
                slopes = activation.derivative(one) * activation.derivative(two)
                return jnp.stack([activation(one) * activation(two), slopes])

            terms = jax.vmap(products)(points_)
            return totals + weight * jnp.tensordot(weights_, terms, axes=1, precision="highest"), None

        start = jnp.zeros((2, *covariance.shape), dtype)
        product, slope = jax.lax.scan(add, start, (points_, weights_))[0]
        return product, slope

    return dual


DUALS = {Identity: _identity, Relu: _relu, Erf: _erf}
"""Closed forms of `E[φ(u) φ(v)]` and `E[φ'(u) φ'(v)]`, from the two variances and the covariance."""

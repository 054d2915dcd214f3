"""Activation functions with their derivatives as explicit formulas."""

import abc
import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class AbstractActivation(eqx.Module):
    """An elementwise activation `φ` and its derivative `φ'`.

    The derivative is a formula of its own, so that a backward rule does not depend on automatic differentiation and
    the two can be checked against each other.
    """

    @abc.abstractmethod
    def __call__(self, preactivation: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """`φ`, elementwise."""

    @abc.abstractmethod
    def derivative(self, preactivation: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """`φ'`, elementwise."""


class Relu(AbstractActivation):
    """Rectifier `max(p, 0)`; the derivative is 1 for `p > 0` and 0 elsewhere, at 0 included. NaN stays NaN.

    >>> Relu().derivative(jnp.array([-1.0, 0.0, 2.0])).tolist()
    [0.0, 0.0, 1.0]
    """

    def __call__(self, preactivation: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return jax.nn.relu(preactivation)

    def derivative(self, preactivation: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return jnp.where(jnp.isnan(preactivation), preactivation, (preactivation > 0).astype(preactivation.dtype))


class Tanh(AbstractActivation):
    """Hyperbolic tangent; the derivative is `1 − tanh²`."""

    def __call__(self, preactivation: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return jnp.tanh(preactivation)

    def derivative(self, preactivation: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return 1 - jnp.tanh(preactivation) ** 2


class Gelu(AbstractActivation):
    """Gaussian error linear unit `p Φ(p)`, `Φ` the standard normal distribution function (no tanh approximation).

    The derivative is `Φ(p) + p exp(−p²/2) / √(2π)`.
    """

    def __call__(self, preactivation: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return preactivation * jax.scipy.special.ndtr(preactivation)

    def derivative(self, preactivation: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        density = jnp.exp(-(preactivation**2) / 2) / math.sqrt(2 * math.pi)
        return jax.scipy.special.ndtr(preactivation) + preactivation * density


class Erf(AbstractActivation):
    """Error function `2/√π ∫_0^p exp(−u²) du`; the derivative is `2/√π exp(−p²)`."""

    def __call__(self, preactivation: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return jax.scipy.special.erf(preactivation)

    def derivative(self, preactivation: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return 2 / math.sqrt(math.pi) * jnp.exp(-(preactivation**2))


class Identity(AbstractActivation):
    """No activation, for deep linear networks; the derivative is 1."""

    def __call__(self, preactivation: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return preactivation

    def derivative(self, preactivation: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return jnp.ones_like(preactivation)


class Elementwise(AbstractActivation):
    """Any function that acts on each entry alone; the derivative is its forward derivative.

    Parameters
    ----------
    function
        Takes and returns an array of any shape, entry by entry.

    >>> Elementwise(jnp.sin).derivative(jnp.zeros(2)).tolist()
    [1.0, 1.0]
    """

    function: Callable = eqx.field(static=True)

    def __call__(self, preactivation: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return self.function(preactivation)

    def derivative(self, preactivation: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return jax.jvp(self.function, (preactivation,), (jnp.ones_like(preactivation),))[1]

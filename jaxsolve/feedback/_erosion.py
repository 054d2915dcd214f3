"""Learning speeds of backward rules, and the share of the speed of backpropagation that a rule loses in one step."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from .._results import RESULTS, first_failure, raise_failures
from .._types import ArrayLike, Scalar
from ._network import AbstractNetwork, ForwardPass
from ._rules import AbstractBackwardRule, Backprop


class InitialErosion(eqx.Module):
    """Speeds of a rule and of backpropagation at one point, and their shares.

    The speed of a rule is the first-order decrease of the loss per unit of learning rate, `Σ_l ⟨g_l^BP, g_l⟩`, with a
    sum over examples inside `g_l`.

    Attributes
    ----------
    layer_speeds
        `⟨g_l^BP, g_l⟩` of the layers `1, …, L`, biases included.
    backprop_layer_speeds
        `⟨g_l^BP, g_l^BP⟩`.
    erosion
        `e_0 = 1 − Σ_l ⟨g_l^BP, g_l⟩ / Σ_l ⟨g_l^BP, g_l^BP⟩`: 0 where the rule is as fast as backpropagation, 1 where it
        makes no progress; it may lie outside of [0, 1]. NaN where the result is not successful.
    output_share, hidden_share
        Share of the last layer in the speed of backpropagation, and of all others; they add up to 1. NaN where the
        result is not successful.
    result
        ``RESULTS.not_finite``, ``RESULTS.no_speed`` or success.
    """

    layer_speeds: Float[Array, " layers"]
    backprop_layer_speeds: Float[Array, " layers"]
    erosion: Scalar
    output_share: Scalar
    hidden_share: Scalar
    result: RESULTS

    @property
    def speed(self) -> Scalar:
        """`Σ_l ⟨g_l^BP, g_l⟩`."""
        return jnp.sum(self.layer_speeds)

    @property
    def backprop_speed(self) -> Scalar:
        """`Σ_l ⟨g_l^BP, g_l^BP⟩`."""
        return jnp.sum(self.backprop_layer_speeds)


def initial_erosion(
    network: AbstractNetwork,
    inputs: Num[ArrayLike, "examples *features"],
    cotangent: Float[Array, "examples outputs"],
    rule: AbstractBackwardRule,
    *,
    throw: bool = True,
) -> InitialErosion:
    """Run both backward passes and compare their speeds.

    The erosion does not depend on the scale of the cotangent: `r`, `r/N` and any other multiple give the same. It is
    computed as `Σ_{l<L} (⟨g_l^BP, g_l^BP⟩ − ⟨g_l^BP, g_l⟩)` over the speed of backpropagation, because the last layer
    has the same gradient under every rule. The gradient of a convolution is a sum over its positions, so that the inner
    product holds the terms between any two of them.

    Parameters
    ----------
    network, inputs
        Any network of this package, and at least one example.
    cotangent
        Derivative of the loss by the outputs. For the loss `‖f − Y‖² / (2N)` that is `(f − Y)/N`; any loss will do.
    rule
        The alternative to backpropagation.
    throw
        Raise where the erosion is not defined, or tell it in the result alone.

    Raises
    ------
    ValueError
        For no examples, and for a cotangent or matrices that do not fit the network. With ``throw``, where all
        gradients are zero, as for a residual of zero, and where a value is not finite.

    >>> from jaxsolve.feedback import MLP
    >>> network = MLP([jnp.eye(2), jnp.ones((1, 2))])
    >>> inputs, cotangent = jnp.array([[3.0, 0.0]]), jnp.array([[1.0]])
    >>> found = initial_erosion(network, inputs, cotangent, Backprop())
    >>> float(found.erosion), float(found.output_share), float(found.backprop_speed)
    (0.0, 0.5, 18.0)
    """
    check_examples(network, inputs, cotangent)
    found, flags = _initial_erosion(network, inputs, cotangent, rule)
    return raised(found, flags) if throw else found


@eqx.filter_jit
def _initial_erosion(network, inputs, cotangent, rule) -> tuple[InitialErosion, RESULTS]:
    forward = network.forward(inputs)
    scaled, scale = unit_scale(cotangent)
    exact = Backprop().gradients(network, forward, scaled)
    alternative = rule.gradients(network, forward, scaled)
    squares, products = _layer_products(exact, exact), _layer_products(exact, alternative)
    total = jnp.sum(squares)
    flags = failures(cotangent, total, jnp.sum(products))
    defined = jnp.all(flags == RESULTS.successful)
    divisor = jnp.where(defined, total, 1)
    found = InitialErosion(
        layer_speeds=products * scale**2,
        backprop_layer_speeds=squares * scale**2,
        erosion=jnp.where(defined, jnp.sum(squares[:-1] - products[:-1]) / divisor, jnp.nan),
        output_share=jnp.where(defined, squares[-1] / divisor, jnp.nan),
        hidden_share=jnp.where(defined, jnp.sum(squares[:-1]) / divisor, jnp.nan),
        result=jax.tree.map(lambda codes: codes[0], flags),
    )
    return found, flags


def _layer_products(first: AbstractNetwork, second: AbstractNetwork) -> Float[Array, " layers"]:
    products = [jnp.sum(one * other) for one, other in zip(first.weights, second.weights, strict=True)]
    if first.biases is not None and second.biases is not None:
        for layer, (one, other) in enumerate(zip(first.biases, second.biases, strict=True)):
            if one is not None and other is not None:
                products[layer] += jnp.sum(one * other)
    return jnp.stack(products)


def unit_scale(cotangent: Array) -> tuple[Array, Scalar]:
    """The cotangent divided by its largest entry, and that entry: squares then neither overflow nor vanish."""
    largest = jax.lax.stop_gradient(jnp.max(jnp.abs(cotangent)))
    scale = jnp.where((largest > 0) & jnp.isfinite(largest), largest, 1)
    return cotangent / scale, scale


def failures(cotangent: Array, backprop_speed: Scalar, *others: Scalar) -> RESULTS:
    """One result, along an axis of length one, for a speed of backpropagation that is to be divided by."""
    finite = jnp.all(jnp.isfinite(cotangent)) & jnp.all(jnp.isfinite(jnp.stack([backprop_speed, *others])))
    return first_failure((~finite[None], RESULTS.not_finite), ((backprop_speed == 0)[None], RESULTS.no_speed))


def raised(value, flags: RESULTS):
    """``value``, or an error where the one result of [`failures`][] is not successful."""
    return raise_failures(value, flags, of="backward passes")


def check_examples(network: AbstractNetwork, inputs: ArrayLike, cotangent: Array) -> None:
    """Refuse an empty batch, and a cotangent that is not one of the outputs of the network at the inputs."""
    if inputs.ndim and not inputs.shape[0]:
        raise ValueError(f"A speed needs at least one example; got none, inputs of shape {inputs.shape}.")
    expected = (inputs.shape[0] if inputs.ndim else 0, network.widths[-1])
    if cotangent.shape != expected or cotangent.dtype != network.dtype:
        raise ValueError(
            f"The cotangent has shape {expected}, one row per example, and dtype {network.dtype}; got "
            f"{cotangent.shape} and {cotangent.dtype}. Pass the derivative of the loss by the outputs."
        )


def backprop_pass(
    network: AbstractNetwork, inputs: ArrayLike, cotangent: Array
) -> tuple[ForwardPass, AbstractNetwork, Array, Float[Array, " layers"]]:
    """The forward pass, the gradients for the scaled cotangent, that cotangent, and the squares by layer."""
    forward = network.forward(inputs)
    scaled, _ = unit_scale(cotangent)
    exact = Backprop().gradients(network, forward, scaled)
    return forward, exact, scaled, _layer_products(exact, exact)

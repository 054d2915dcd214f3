"""Backward rules: how an error at the outputs reaches the layers."""

import abc
import dataclasses
from collections.abc import Iterable
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._results import RESULTS, first_failure, raise_failures
from .._types import Key, Scalar
from ._network import AbstractNetwork, ForwardPass, Matrices, gaussian_matrices, matrices, weight_variances

Network = TypeVar("Network", bound=AbstractNetwork)
Shapes = list[tuple[int, int]]


class AbstractBackwardRule(eqx.Module):
    """How an error at the outputs is sent back to the layers.

    A rule turns a cotangent at the outputs into one error `δ_l` per layer, linearly. The weight gradient made from
    it is the same for every rule, `g_l = Σ_n δ_l(n) h_{l−1}(n)^T`, and so is the error of the output layer,
    `δ_L = cotangent`. A convolution also sums over its positions.
    """

    @abc.abstractmethod
    def deltas(
        self, network: AbstractNetwork, forward: ForwardPass, cotangent: Float[Array, "#examples *several outputs"]
    ) -> tuple[Float[Array, "#examples *several _"], ...]:
        """The errors `δ_1, …, δ_L`, with `δ_l` of the shape of the cotangent but for its last axis, `n_l`.

        Parameters
        ----------
        network, forward
            The network and its [`ForwardPass`][] at the examples.
        cotangent
            Error at the outputs. Axes between the examples and the outputs carry several cotangents at once; an
            examples axis of length one gives every example the same cotangent.

        Raises
        ------
        ValueError
            Where the cotangent or the matrices of the rule do not fit the network.
        """

    @abc.abstractmethod
    def update(self, change: AbstractNetwork, *, decay: Scalar | float = 0.0) -> "AbstractBackwardRule":
        """The rule for the next step, after the weights have moved by `W ← (1 − decay) W + ΔW`.

        A rule without a state of its own returns itself.

        Parameters
        ----------
        change
            The network with `ΔW_l` in the place of `W_l`, such as `−η` times [`AbstractBackwardRule.gradients`][].
        decay
            Share of the weights that is lost in the step.
        """

    def gradients(self, network: Network, forward: ForwardPass, cotangent: Float[Array, "examples outputs"]) -> Network:
        """The update direction of this rule, `g_l = δ_l^T h_{l−1}` and `Σ_n δ_l(n)` for a bias: sums over examples.

        For the loss `‖f − Y‖² / (2N)`, summed over outputs and averaged over examples, the cotangent is
        `(f − Y) / N`.

        Returns
        -------
        AbstractNetwork
            The network with the update direction in place of each parameter.

        Raises
        ------
        ValueError
            Where the cotangent does not have the shape of the outputs, and as [`AbstractBackwardRule.deltas`][] does.
        """
        if cotangent.shape != forward.outputs.shape:
            raise ValueError(
                f"gradients takes one cotangent of the shape of the outputs, {forward.outputs.shape}; got "
                f"{cotangent.shape}. Use jax.vmap for several."
            )
        deltas = self.deltas(network, forward, cotangent)
        pairs = [
            connection.gradient(below, delta)
            for connection, below, delta in zip(network.connections, forward.activations, deltas, strict=True)
        ]
        biases = network.biases and tuple(
            None if bias is None else gradient for bias, (_, gradient) in zip(network.biases, pairs, strict=True)
        )
        return dataclasses.replace(network, weights=tuple(gradient for gradient, _ in pairs), biases=biases)

    def speed(
        self,
        network: AbstractNetwork,
        forward: ForwardPass,
        cotangent: Float[Array, "examples outputs"],
        *,
        throw: bool = True,
    ) -> Scalar:
        """How fast the loss falls along the direction of this rule, `Σ_l ⟨g_l^BP, g_l⟩` over all parameters.

        To first order the loss whose gradient at the outputs is the cotangent `d` falls by `η` times the speed. With
        `d = f − Y` for the loss `‖f − Y‖² / (2N)` the speed is `N²` times larger than with its gradient `(f − Y) / N`;
        ratios of speeds do not depend on such factors.

        Parameters
        ----------
        network, forward, cotangent
            As in [`AbstractBackwardRule.gradients`][].
        throw
            Whether a speed that is NaN or infinite is an error; else it is returned as it is.

        Raises
        ------
        ValueError
            As ``gradients`` does, and for a speed that is not finite.

        >>> from jaxsolve.feedback import MLP
        >>> network, one = MLP([jnp.array([[2.0]]), jnp.array([[3.0]])]), jnp.ones((1, 1))
        >>> rules = Backprop(), FeedbackAlignment([-one])
        >>> [float(rule.speed(network, network.forward(one), one)) for rule in rules]
        [13.0, 1.0]
        """
        exact, own = (rule.gradients(network, forward, cotangent) for rule in (Backprop(), self))
        products = jax.tree.map(lambda one, other: jnp.sum(one * other), exact, own)
        speed = sum(jax.tree.leaves(products), start=jnp.zeros((), network.dtype))
        if not throw:
            return speed
        return raise_failures(speed, first_failure((~jnp.isfinite(speed)[None], RESULTS.not_finite)), of="speeds")


class AbstractSequentialRule(AbstractBackwardRule):
    """A rule that passes the error down one layer at a time: `δ_l = (δ_{l+1} B_l^T) ⊙ φ'_l`.

    Below a convolution, `B_l` stands in the place of the transposed kernel in the transposed convolution.
    """

    @abc.abstractmethod
    def backward_matrices(self, network: AbstractNetwork) -> Matrices:
        """`B_1, …, B_{L−1}` with `B_l` of the shape of `W_{l+1}^T`, in its place: `(n_l, n_{l+1})` if it is dense."""

    def deltas(
        self, network: AbstractNetwork, forward: ForwardPass, cotangent: Float[Array, "#examples *several outputs"]
    ) -> tuple[Float[Array, "#examples *several _"], ...]:
        delta = _checked_cotangent(forward, cotangent)
        deltas = [delta]
        layers = zip(network.connections[1:], self.backward_matrices(network), forward.gates, strict=True)
        for connection, matrix, gate in reversed(list(layers)):
            delta = _gated(connection.send_back(delta, matrix), gate)
            deltas.append(delta)
        return tuple(reversed(deltas))


class Backprop(AbstractSequentialRule):
    """Backpropagation, `B_l = W_{l+1}^T`: the gradients are exact."""

    def backward_matrices(self, network: AbstractNetwork) -> Matrices:
        return tuple(weight.T for weight in network.weights[1:])

    def update(self, change: AbstractNetwork, *, decay: Scalar | float = 0.0) -> "Backprop":
        return self


class FeedbackAlignment(AbstractSequentialRule):
    """Feedback alignment: fixed matrices `B_l` in the place of `W_{l+1}^T`.

    Lillicrap, Cownden, Tweed and Akerman, Nature Communications 7:13276 (2016).

    Parameters
    ----------
    feedback
        `B_1, …, B_{L−1}`, with `B_l` of the shape of `W_{l+1}^T`.
    """

    feedback: Matrices = eqx.field(converter=matrices)

    @classmethod
    def sample(
        cls, network: AbstractNetwork, *, hidden_gain: float = 2.0, output_gain: float = 1.0, key: Key
    ) -> "FeedbackAlignment":
        """Draw `B_l` with the variance of the forward weights it replaces.

        `B_l ~ N(0, hidden_gain / fan_in)` for `l < L − 1` and `B_{L−1} ~ N(0, output_gain / fan_in)`, where the fan-in
        of `W_{l+1}` is `n_l` for a dense layer.
        """
        variances = replaced_variances(network, hidden_gain, output_gain)
        return cls(gaussian_matrices(replaced_shapes(network), variances, dtype=network.dtype, key=key))

    def backward_matrices(self, network: AbstractNetwork) -> Matrices:
        check_feedback(self, self.feedback, network, replaced_shapes(network))
        return self.feedback

    def update(self, change: AbstractNetwork, *, decay: Scalar | float = 0.0) -> "FeedbackAlignment":
        return self


class DirectFeedbackAlignment(AbstractBackwardRule):
    """Direct feedback alignment: `δ_l = (δ_L B_l^T) ⊙ φ'_l`, straight from the outputs to every layer.

    Nøkland, Advances in Neural Information Processing Systems 29 (2016). With one hidden layer below a dense output
    layer it is feedback alignment. An image gets its error flattened.

    Parameters
    ----------
    feedback
        `B_1, …, B_{L−1}`, with `B_l` of shape `(n_l, n_L)`.
    """

    feedback: Matrices = eqx.field(converter=matrices)

    @classmethod
    def sample(
        cls, network: AbstractNetwork, *, hidden_gain: float = 2.0, output_gain: float = 1.0, key: Key
    ) -> "DirectFeedbackAlignment":
        """Draw `B_l` with the variances of [`FeedbackAlignment.sample`][]: those of the entries of `W_{l+1}`."""
        variances = replaced_variances(network, hidden_gain, output_gain)
        return cls(gaussian_matrices(_direct_shapes(network), variances, dtype=network.dtype, key=key))

    def deltas(
        self, network: AbstractNetwork, forward: ForwardPass, cotangent: Float[Array, "#examples *several outputs"]
    ) -> tuple[Float[Array, "#examples *several _"], ...]:
        cotangent = _checked_cotangent(forward, cotangent)
        check_feedback(self, self.feedback, network, _direct_shapes(network))
        hidden = (
            _gated(jnp.matmul(cotangent, matrix.T, precision="highest"), gate)
            for matrix, gate in zip(self.feedback, forward.gates, strict=True)
        )
        return (*hidden, cotangent)

    def update(self, change: AbstractNetwork, *, decay: Scalar | float = 0.0) -> "DirectFeedbackAlignment":
        return self


def _gated(error: Array, gate: Array) -> Array:
    """`e ⊙ φ'`, with axes of length one in the gate for the several cotangents."""
    return error * gate.reshape(gate.shape[0], *[1] * (error.ndim - 2), gate.shape[1])


def _checked_cotangent(forward: ForwardPass, cotangent: Array) -> Array:
    examples, outputs = forward.outputs.shape
    if cotangent.ndim < 2 or cotangent.shape[0] not in (1, examples) or cotangent.shape[-1] != outputs:
        raise ValueError(
            f"A cotangent has shape (examples, ..., outputs) with {examples} (or 1) examples and {outputs} outputs; "
            f"got {cotangent.shape}."
        )
    return cotangent


def replaced_shapes(network: AbstractNetwork) -> Shapes:
    """Of `W_2^T, …, W_L^T`."""
    return [(weight.shape[1], weight.shape[0]) for weight in network.weights[1:]]


def _direct_shapes(network: AbstractNetwork) -> Shapes:
    widths = network.widths
    return [(width, widths[-1]) for width in widths[1:-1]]


def replaced_variances(network: AbstractNetwork, hidden_gain: float, output_gain: float) -> tuple[float, ...]:
    """Of the entries of `W_2, …, W_L`."""
    fans = (*(weight.shape[1] for weight in network.weights), network.weights[-1].shape[0])
    return weight_variances(fans, hidden_gain=hidden_gain, output_gain=output_gain)[1:]


def check_feedback(
    rule: AbstractBackwardRule, feedback: Iterable[Array], network: AbstractNetwork, expected: Shapes
) -> None:
    """Raise where matrices do not have the expected shapes and the dtype of the network."""
    name, feedback = type(rule).__name__, tuple(feedback)
    remedy = f"Draw fitting ones with {name}.sample(network, key=key)."
    if len(feedback) != len(expected):
        raise ValueError(
            f"{name} needs one feedback matrix per hidden layer, {len(expected)} for widths {network.widths}; got "
            f"{len(feedback)}. {remedy}"
        )
    for layer, (matrix, shape) in enumerate(zip(feedback, expected, strict=True), start=1):
        if matrix.shape != shape:
            raise ValueError(
                f"{name}: the feedback matrix of hidden layer {layer} has shape {shape} for widths "
                f"{network.widths}; got {matrix.shape}. {remedy}"
            )
        if matrix.dtype != network.dtype:
            raise ValueError(
                f"{name}: the feedback matrix of hidden layer {layer} has dtype {matrix.dtype}, the network "
                f"{network.dtype}. {remedy}"
            )

"""Backward rules: how an error at the outputs reaches the layers."""

import abc
from collections.abc import Iterable
from itertools import pairwise

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Key
from ._network import MLP, ForwardPass, gaussian_matrices, weight_variances


class AbstractBackwardRule(eqx.Module):
    """How an error at the outputs is sent back to the layers.

    A rule turns a cotangent at the outputs into one error `δ_l` per layer, linearly. The weight gradient made from
    it is the same for every rule, `g_l = Σ_n δ_l(n) h_{l−1}(n)^T`, and so is the error of the output layer,
    `δ_L = cotangent`.
    """

    @abc.abstractmethod
    def deltas(
        self, network: MLP, forward: ForwardPass, cotangent: Float[Array, "#examples *several outputs"]
    ) -> tuple[Float[Array, "#examples *several _"], ...]:
        """The errors `δ_1, …, δ_L`.

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

    def gradients(self, network: MLP, forward: ForwardPass, cotangent: Float[Array, "examples outputs"]) -> MLP:
        """The update direction of this rule, `g_l = δ_l^T h_{l−1}` and `Σ_n δ_l(n)` for a bias: sums over examples.

        For the loss `‖f − Y‖² / (2N)`, summed over outputs and averaged over examples, the cotangent is
        `(f − Y) / N`.

        Returns
        -------
        MLP
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
        weights = tuple(
            jnp.matmul(delta.T, hidden, precision="highest")
            for delta, hidden in zip(deltas, forward.activations, strict=True)
        )
        biases = None if network.biases is None else tuple(jnp.sum(delta, axis=0) for delta in deltas)
        return MLP(weights, biases, network.activation)


class AbstractSequentialRule(AbstractBackwardRule):
    """A rule that passes the error down one layer at a time: `δ_l = (δ_{l+1} B_l^T) ⊙ φ'_l`."""

    @abc.abstractmethod
    def backward_matrices(self, network: MLP) -> tuple[Float[Array, "_ _"], ...]:
        """`B_1, …, B_{L−1}` with `B_l` of shape `(n_l, n_{l+1})`, in the place of `W_{l+1}^T`."""

    def deltas(
        self, network: MLP, forward: ForwardPass, cotangent: Float[Array, "#examples *several outputs"]
    ) -> tuple[Float[Array, "#examples *several _"], ...]:
        delta = _checked_cotangent(forward, cotangent)
        deltas = [delta]
        for matrix, gate in zip(reversed(self.backward_matrices(network)), reversed(forward.gates), strict=True):
            delta = _sent_back(delta, matrix, gate)
            deltas.append(delta)
        return tuple(reversed(deltas))


class Backprop(AbstractSequentialRule):
    """Backpropagation, `B_l = W_{l+1}^T`: the gradients are exact."""

    def backward_matrices(self, network: MLP) -> tuple[Float[Array, "_ _"], ...]:
        return tuple(weight.T for weight in network.weights[1:])


def _matrices(arrays: Iterable) -> tuple[Array, ...]:
    return tuple(jnp.asarray(array) for array in arrays)


class FeedbackAlignment(AbstractSequentialRule):
    """Feedback alignment: fixed matrices `B_l` in the place of `W_{l+1}^T`.

    Lillicrap, Cownden, Tweed and Akerman, Nature Communications 7:13276 (2016).

    Parameters
    ----------
    feedback
        `B_1, …, B_{L−1}`, with `B_l` of shape `(n_l, n_{l+1})`.
    """

    feedback: tuple[Float[Array, "_ _"], ...] = eqx.field(converter=_matrices)

    @classmethod
    def sample(
        cls, network: MLP, *, hidden_gain: float = 2.0, output_gain: float = 1.0, key: Key
    ) -> "FeedbackAlignment":
        """Draw `B_l` with the variance of the forward weights it replaces.

        `B_l ~ N(0, hidden_gain / n_l)` for `l < L − 1` and `B_{L−1} ~ N(0, output_gain / n_{L−1})`.
        """
        return cls(_feedback(network, pairwise(network.widths[1:]), hidden_gain, output_gain, key))

    def backward_matrices(self, network: MLP) -> tuple[Float[Array, "_ _"], ...]:
        _check_feedback(self, network, list(pairwise(network.widths[1:])))
        return self.feedback


class DirectFeedbackAlignment(AbstractBackwardRule):
    """Direct feedback alignment: `δ_l = (δ_L B_l^T) ⊙ φ'_l`, straight from the outputs to every layer.

    Nøkland, Advances in Neural Information Processing Systems 29 (2016). With one hidden layer it is feedback
    alignment.

    Parameters
    ----------
    feedback
        `B_1, …, B_{L−1}`, with `B_l` of shape `(n_l, n_L)`.
    """

    feedback: tuple[Float[Array, "_ _"], ...] = eqx.field(converter=_matrices)

    @classmethod
    def sample(
        cls, network: MLP, *, hidden_gain: float = 2.0, output_gain: float = 1.0, key: Key
    ) -> "DirectFeedbackAlignment":
        """Draw `B_l` with the variances of [`FeedbackAlignment.sample`][]: those of the entries of `W_{l+1}`."""
        shapes = ((width, network.widths[-1]) for width in network.widths[1:-1])
        return cls(_feedback(network, shapes, hidden_gain, output_gain, key))

    def deltas(
        self, network: MLP, forward: ForwardPass, cotangent: Float[Array, "#examples *several outputs"]
    ) -> tuple[Float[Array, "#examples *several _"], ...]:
        cotangent = _checked_cotangent(forward, cotangent)
        _check_feedback(self, network, [(width, network.widths[-1]) for width in network.widths[1:-1]])
        hidden = (
            _sent_back(cotangent, matrix, gate) for matrix, gate in zip(self.feedback, forward.gates, strict=True)
        )
        return (*hidden, cotangent)


def _sent_back(delta: Array, matrix: Array, gate: Array) -> Array:
    """`(δ B^T) ⊙ φ'`, with axes of length one in the gate for the several cotangents."""
    gate = gate.reshape(gate.shape[0], *[1] * (delta.ndim - 2), gate.shape[1])
    return jnp.matmul(delta, matrix.T, precision="highest") * gate


def _checked_cotangent(forward: ForwardPass, cotangent: Array) -> Array:
    examples, outputs = forward.outputs.shape
    if cotangent.ndim < 2 or cotangent.shape[0] not in (1, examples) or cotangent.shape[-1] != outputs:
        raise ValueError(
            f"A cotangent has shape (examples, ..., outputs) with {examples} (or 1) examples and {outputs} outputs; "
            f"got {cotangent.shape}."
        )
    return cotangent


def _feedback(network: MLP, shapes: Iterable[tuple[int, int]], hidden_gain: float, output_gain: float, key: Key):
    variances = weight_variances(network.widths, hidden_gain=hidden_gain, output_gain=output_gain)[1:]
    return gaussian_matrices(shapes, variances, dtype=network.dtype, key=key)


def _check_feedback(
    rule: FeedbackAlignment | DirectFeedbackAlignment, network: MLP, expected: list[tuple[int, int]]
) -> None:
    name, remedy = type(rule).__name__, f"Draw fitting ones with {type(rule).__name__}.sample(network, key=key)."
    if len(rule.feedback) != len(expected):
        raise ValueError(
            f"{name} needs one feedback matrix per hidden layer, {len(expected)} for widths {network.widths}; got "
            f"{len(rule.feedback)}. {remedy}"
        )
    for layer, (matrix, shape) in enumerate(zip(rule.feedback, expected, strict=True), start=1):
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

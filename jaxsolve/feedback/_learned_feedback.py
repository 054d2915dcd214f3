"""Backward rules whose matrices know something of the weights: their signs, or their changes."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Key, Scalar
from ._network import AbstractNetwork, Matrices, gaussian_matrices, matrices
from ._rules import AbstractSequentialRule, check_feedback, replaced_shapes, replaced_variances


class SignSymmetry(AbstractSequentialRule):
    """Sign symmetry, `B_l = M_l ⊙ sign(W_{l+1}^T)`: the signs of the weights, with magnitudes that do not change.

    Liao, Leibo and Poggio, How important is weight symmetry in backpropagation?, AAAI (2016). The magnitudes are one
    number `s_l` per layer, or a matrix drawn once. A weight of zero has the sign 0. These matrices are not of mean
    zero given the weights, so that statements about averages over independent feedback do not hold for them.

    Parameters
    ----------
    magnitudes
        `M_1, …, M_{L−1}`: numbers, or matrices of the shape of `W_{l+1}^T`.
    """

    magnitudes: tuple[Float[Array, "..."], ...] = eqx.field(converter=matrices)

    @classmethod
    def uniform(cls, network: AbstractNetwork, *, hidden_gain: float = 2.0, output_gain: float = 1.0) -> "SignSymmetry":
        """One magnitude per layer, the standard deviation in [`FeedbackAlignment.sample`][]."""
        variances = replaced_variances(network, hidden_gain, output_gain)
        return cls([jnp.asarray(variance**0.5, network.dtype) for variance in variances])

    @classmethod
    def sample(
        cls, network: AbstractNetwork, *, hidden_gain: float = 2.0, output_gain: float = 1.0, key: Key
    ) -> "SignSymmetry":
        """Magnitudes of Gaussian matrices with the variances of [`FeedbackAlignment.sample`][]."""
        return cls(_magnitudes(network, replaced_variances(network, hidden_gain, output_gain), key))

    def backward_matrices(self, network: AbstractNetwork) -> Matrices:
        shapes = replaced_shapes(network)
        full = [
            jnp.broadcast_to(magnitude, shape) if magnitude.ndim == 0 else magnitude
            for magnitude, shape in zip(self.magnitudes, shapes, strict=False)
        ]
        check_feedback(self, [*full, *self.magnitudes[len(shapes) :]], network, shapes)
        return _signed(network, full)

    def update(self, change: AbstractNetwork, *, decay: Scalar | float = 0.0) -> "SignSymmetry":
        return self


class ResampledSignSymmetry(AbstractSequentialRule):
    """Sign symmetry with magnitudes that are drawn again for every batch, `B_l = |M_l| ⊙ sign(W_{l+1}^T)`.

    The entries of `M_l` are normal with the variances of [`FeedbackAlignment.sample`][]. They are determined by the
    key: the rule gives the same errors until ``update``, which returns the rule with the next key.

    Parameters
    ----------
    key
        A typed key.
    hidden_gain, output_gain
        See [`weight_variances`][].
    """

    key: Key
    hidden_gain: float = eqx.field(static=True, default=2.0)
    output_gain: float = eqx.field(static=True, default=1.0)

    def backward_matrices(self, network: AbstractNetwork) -> Matrices:
        variances = replaced_variances(network, self.hidden_gain, self.output_gain)
        return _signed(network, _magnitudes(network, variances, jax.random.fold_in(self.key, 0)))

    def update(self, change: AbstractNetwork, *, decay: Scalar | float = 0.0) -> "ResampledSignSymmetry":
        return ResampledSignSymmetry(jax.random.fold_in(self.key, 1), self.hidden_gain, self.output_gain)


class KolenPollack(AbstractSequentialRule):
    """Matrices that start anywhere and learn with the weights: `B_l ← (1 − decay) B_l + ΔW_{l+1}^T`.

    Kolen and Pollack, Backpropagation without weight transport, ICNN (1994); Akrout et al., Deep learning without
    weight transport, Advances in Neural Information Processing Systems 32 (2019). Where the weights move by
    `W ← (1 − decay) W + ΔW`, the difference `W_{l+1}^T − B_l` is multiplied by `1 − decay` in every step, so that the
    rule tends to backpropagation.

    Parameters
    ----------
    feedback
        `B_1, …, B_{L−1}`, with `B_l` of the shape of `W_{l+1}^T`.
    """

    feedback: Matrices = eqx.field(converter=matrices)

    @classmethod
    def sample(
        cls, network: AbstractNetwork, *, hidden_gain: float = 2.0, output_gain: float = 1.0, key: Key
    ) -> "KolenPollack":
        """The start of [`FeedbackAlignment.sample`][]."""
        variances = replaced_variances(network, hidden_gain, output_gain)
        return cls(gaussian_matrices(replaced_shapes(network), variances, dtype=network.dtype, key=key))

    def backward_matrices(self, network: AbstractNetwork) -> Matrices:
        check_feedback(self, self.feedback, network, replaced_shapes(network))
        return self.feedback

    def update(self, change: AbstractNetwork, *, decay: Scalar | float = 0.0) -> "KolenPollack":
        check_feedback(self, self.feedback, change, replaced_shapes(change))
        kept = 1 - jnp.asarray(decay, change.dtype)
        pairs = zip(self.feedback, change.weights[1:], strict=True)
        return KolenPollack([kept * matrix + weight.T for matrix, weight in pairs])


def _magnitudes(network: AbstractNetwork, variances: tuple[float, ...], key: Key) -> Matrices:
    drawn = gaussian_matrices(replaced_shapes(network), variances, dtype=network.dtype, key=key)
    return tuple(jnp.abs(matrix) for matrix in drawn)


def _signed(network: AbstractNetwork, magnitudes) -> Matrices:
    pairs = zip(magnitudes, network.weights[1:], strict=True)
    return tuple(magnitude * jnp.sign(weight.T) for magnitude, weight in pairs)

"""Attention through a kernel whose spectral frequencies are learned."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import ArrayLike, Key, Scalar
from ._attention import AbstractFeatureAttention, as_tokens, initial_weights
from ._tokens import OperatorTokens

_SPECTRA = {"stationary": 1, "non-stationary": 2}


class Flexformer(AbstractFeatureAttention):
    """Attention through trigonometric features with learned frequencies, `A_ij = φ(q_i) · φ(k_j)`.

    With `D` frequencies and amplitudes `a = exp(α)`, a head has the features

        stationary       φ(x) = [a ⊙ cos Ωx,              a ⊙ sin Ωx             ] / √D,
        non-stationary   φ(x) = [a ⊙ (cos Ω₁x + cos Ω₂x), a ⊙ (sin Ω₁x + sin Ω₂x)] / √(4D).

    The stationary kernel is `(1/D) Σ_f a_f² cos(ω_f · (q − k))`; the other one equals it where `Ω₁ = Ω₂`. Both are
    positive semidefinite where queries and keys are the same. Entries may have either sign, so rows are not
    normalised: a row sum may vanish. Each head has rank at most `2D`.

    The construction follows what is known of Zhang and Zhou (arXiv:2606.27748), random Fourier features with
    trainable spectral frequencies; normalisation and amplitudes are ours.

    The remaining fields, the role of the tokens and what is raised are those of [`AbstractAttention`][].

    Attributes
    ----------
    frequencies
        `Ω`, or `Ω₁` and `Ω₂`, shape `(spectra, heads, features, head_size)` with one or two spectra.
    log_amplitudes
        `α`, shape `(heads, features)`.

    >>> model = Flexformer(jnp.array([[0.0], [0.5]]), [[[1.0]]], [[[1.0]]], [0.5], 1.0, [[[[jnp.pi]]]], [[0.0]])
    >>> model.matrix(jnp.zeros((3, 2, 2))).round(12).tolist()
    [[1.5, 0.0], [0.0, 1.5]]
    """

    tokens: Float[Array, "size d"] | OperatorTokens = eqx.field(converter=as_tokens)
    query_weights: Float[Array, "heads d head_size"] = eqx.field(converter=jnp.asarray)
    key_weights: Float[Array, "heads d head_size"] = eqx.field(converter=jnp.asarray)
    gains: Float[Array, " heads"] = eqx.field(converter=jnp.asarray)
    skip: Scalar = eqx.field(converter=jnp.asarray)
    frequencies: Float[Array, "spectra heads features head_size"] = eqx.field(converter=jnp.asarray)
    log_amplitudes: Float[Array, "heads features"] = eqx.field(converter=jnp.asarray)

    def __check_init__(self):
        weights, shape = self.query_weights.shape, self.frequencies.shape
        if len(shape) != 4 or shape[0] not in (1, 2) or shape[2] < 1 or shape[1::2] != weights[::2]:
            raise ValueError(
                "frequencies has shape (spectra, heads, features, head_size), with one spectrum (stationary) or two "
                "(non-stationary), at least one feature, and heads and head_size those of query_weights, here of shape "
                f"{weights}; got {shape}."
            )
        if self.log_amplitudes.shape != shape[1:3]:
            raise ValueError(
                f"Every head and frequency has one log amplitude, {shape[1:3]}; got {self.log_amplitudes.shape}."
            )

    @classmethod
    def initialise(
        cls,
        tokens: Float[ArrayLike, "size d"] | OperatorTokens,
        *,
        kernel: Literal["stationary", "non-stationary"] = "non-stationary",
        heads: int = 4,
        head_size: int = 8,
        features: int = 16,
        gain: float = 0.1,
        skip: float = 1.0,
        key: Key,
    ) -> "Flexformer":
        """Frequencies with independent entries `N(0, 1)`, amplitudes one.

        Parameters
        ----------
        tokens, heads, head_size, gain, skip
            As in `LinearAttention.initialise`.
        kernel
            ``"stationary"`` or ``"non-stationary"``.
        features
            `D`, the number of frequencies of a head.
        key
            For projections and frequencies.

        Raises
        ------
        ValueError
            As the class does, and for any other kernel.
        """
        if kernel not in _SPECTRA:
            raise ValueError(f"kernel is one of {', '.join(map(repr, _SPECTRA))}; got {kernel!r}.")
        tokens = as_tokens(tokens)
        projection_key, frequency_key = jax.random.split(key)
        weights = initial_weights(tokens, heads=heads, head_size=head_size, gain=gain, skip=skip, key=projection_key)
        shape = (_SPECTRA[kernel], heads, features, head_size)
        frequencies = jax.random.normal(frequency_key, shape, tokens.dtype)
        return cls(tokens, *weights, frequencies, jnp.zeros((heads, features), tokens.dtype))

    def factors(
        self, tokens: Float[Array, "size d"]
    ) -> tuple[Float[Array, "heads size features"], Float[Array, "heads size features"]]:
        left, right = (self._features(projection) for projection in self.projections(tokens))
        return left, right

    def _features(self, projection):
        phases = jnp.einsum("hid,shfd->shif", projection, self.frequencies, precision="highest")
        waves = jnp.concatenate([jnp.cos(phases).mean(axis=0), jnp.sin(phases).mean(axis=0)], axis=2)
        amplitudes = jnp.exp(jnp.tile(self.log_amplitudes, 2))[:, None, :]
        return amplitudes * waves / self.frequencies.shape[2] ** 0.5

"""Attention through positive random features."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import ArrayLike, Key, Scalar
from ._attention import AbstractFeatureAttention, as_tokens, initial_weights
from ._tokens import OperatorTokens


class PositiveFeatureAttention(AbstractFeatureAttention):
    """Attention through positive features, normalised over each row,

        φ(x) = exp(Ωx − ‖x‖²/2 − m) / √D,    A_ij = φ(q_i) · φ(k_j) / (Σ_l φ(q_i) · φ(k_l) + 1e-6),

    where `m` is the largest exponent over all tokens and features of a head, taken for queries and for keys
    separately: it prevents overflow and otherwise only changes what the 1e-6 is compared with. Rows sum to less than
    one; the row of a query whose features all lie far below the largest ones is near zero. Each head has rank at most
    `D`.

    For standard normal frequencies and `m = 0`, the mean of `φ(q) · φ(k)` is `exp(q · k)` (Choromanski et al.,
    arXiv:2009.14794), without the `√d_h` of [`SoftmaxAttention`][]. Here the frequencies are parameters.

    The remaining fields, the role of the tokens and what is raised are those of [`AbstractAttention`][].

    Attributes
    ----------
    frequencies
        `Ω`, shape `(heads, features, head_size)`.

    >>> model = PositiveFeatureAttention(jnp.array([[1.0], [1.0]]), [[[1.0]]], [[[1.0]]], [0.5], 1.0, [[[1.0]]])
    >>> model.matrix(jnp.zeros((3, 2, 2))).round(6).tolist()
    [[1.25, 0.25], [0.25, 1.25]]
    """

    tokens: Float[Array, "size d"] | OperatorTokens = eqx.field(converter=as_tokens)
    query_weights: Float[Array, "heads d head_size"] = eqx.field(converter=jnp.asarray)
    key_weights: Float[Array, "heads d head_size"] = eqx.field(converter=jnp.asarray)
    gains: Float[Array, " heads"] = eqx.field(converter=jnp.asarray)
    skip: Scalar = eqx.field(converter=jnp.asarray)
    frequencies: Float[Array, "heads features head_size"] = eqx.field(converter=jnp.asarray)

    def __check_init__(self):
        weights, shape = self.query_weights.shape, self.frequencies.shape
        if len(shape) != 3 or shape[1] < 1 or shape[::2] != weights[::2]:
            raise ValueError(
                "frequencies has shape (heads, features, head_size), with at least one feature, and heads and "
                f"head_size those of query_weights, here of shape {weights}; got {shape}."
            )

    @classmethod
    def initialise(
        cls,
        tokens: Float[ArrayLike, "size d"] | OperatorTokens,
        *,
        heads: int = 4,
        head_size: int = 8,
        features: int = 16,
        gain: float = 0.1,
        skip: float = 1.0,
        key: Key,
    ) -> "PositiveFeatureAttention":
        """Frequencies with independent entries `N(0, 1)`.

        Parameters
        ----------
        tokens, heads, head_size, gain, skip
            As in `LinearAttention.initialise`.
        features
            `D`, the number of features of a head.
        key
            For projections and frequencies.

        Raises
        ------
        ValueError
            As the class does.
        """
        tokens = as_tokens(tokens)
        projection_key, frequency_key = jax.random.split(key)
        weights = initial_weights(tokens, heads=heads, head_size=head_size, gain=gain, skip=skip, key=projection_key)
        return cls(tokens, *weights, jax.random.normal(frequency_key, (heads, features, head_size), tokens.dtype))

    def factors(
        self, tokens: Float[Array, "size d"]
    ) -> tuple[Float[Array, "heads size features"], Float[Array, "heads size features"]]:
        left, right = (self._features(projection) for projection in self.projections(tokens))
        rows = jnp.einsum("hif,hf->hi", left, right.sum(axis=1), precision="highest")
        return left / (rows + 1e-6)[:, :, None], right

    def _features(self, projection):
        phases = jnp.einsum("hid,hfd->hif", projection, self.frequencies, precision="highest")
        exponents = phases - (projection**2).sum(axis=2, keepdims=True) / 2
        largest = exponents.max(axis=(1, 2), keepdims=True)
        return jnp.exp(exponents - largest) / self.frequencies.shape[1] ** 0.5

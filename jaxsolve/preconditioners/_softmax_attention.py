"""Attention with softmax."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import ArrayLike, Key, Scalar
from ._attention import AbstractAttention, as_tokens, initial_weights
from ._tokens import OperatorTokens


class SoftmaxAttention(AbstractAttention):
    """Softmax attention: `P = ρ I + Σ_h γ_h softmax(Q_h K_hᵀ / √d_h)`, the softmax over each row.

    The rows of a head are positive and sum to one. Applying `P` forms the heads, at a cost quadratic in the size. The
    fields, the role of the tokens and what is raised are those of [`AbstractAttention`][].

    >>> model = SoftmaxAttention(jnp.array([[1.0], [1.0]]), [[[1.0]]], [[[1.0]]], [0.5], 1.0)
    >>> model.matrix(jnp.zeros((3, 2, 2))).tolist()
    [[1.25, 0.25], [0.25, 1.25]]
    """

    tokens: Float[Array, "size d"] | OperatorTokens = eqx.field(converter=as_tokens)
    query_weights: Float[Array, "heads d head_size"] = eqx.field(converter=jnp.asarray)
    key_weights: Float[Array, "heads d head_size"] = eqx.field(converter=jnp.asarray)
    gains: Float[Array, " heads"] = eqx.field(converter=jnp.asarray)
    skip: Scalar = eqx.field(converter=jnp.asarray)

    @classmethod
    def initialise(
        cls,
        tokens: Float[ArrayLike, "size d"] | OperatorTokens,
        *,
        heads: int = 4,
        head_size: int = 8,
        gain: float = 0.1,
        skip: float = 1.0,
        key: Key,
    ) -> "SoftmaxAttention":
        """Projections with independent entries `N(0, 1/d)`; the parameters are those of `LinearAttention.initialise`.

        Raises
        ------
        ValueError
            As the class does.
        """
        tokens = as_tokens(tokens)
        return cls(tokens, *initial_weights(tokens, heads=heads, head_size=head_size, gain=gain, skip=skip, key=key))

    def attention(self, tokens: Float[Array, "size d"]) -> Float[Array, "heads size size"]:
        queries, keys = self.projections(tokens)
        scores = jnp.einsum("hif,hjf->hij", queries, keys, precision="highest") / keys.shape[2] ** 0.5
        return jax.nn.softmax(scores, axis=2)

    def attend(
        self, tokens: Float[Array, "size d"], vectors: Float[Array, "vectors size"]
    ) -> Float[Array, "vectors size"]:
        return jnp.einsum("h,hij,vj->vi", self.gains, self.attention(tokens), vectors, precision="highest")

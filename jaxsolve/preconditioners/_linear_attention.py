"""Attention without softmax."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import ArrayLike, Key, Scalar
from ._attention import AbstractFeatureAttention, as_tokens, initial_weights
from ._tokens import OperatorTokens


class LinearAttention(AbstractFeatureAttention):
    """Linear attention: `P = ρ I + Σ_h γ_h Q_h K_hᵀ / √d_h` with `Q_h = X W_Q^(h)`, `K_h = X W_K^(h)`.

    Entries may have either sign, and each head has rank at most its size `d_h`. The fields, the role of the tokens
    and what is raised are those of [`AbstractAttention`][].

    >>> model = LinearAttention(jnp.array([[1.0], [2.0]]), [[[1.0]]], [[[1.0]]], [0.5], 1.0)
    >>> model.matrix(jnp.zeros((3, 2, 2))).tolist()
    [[1.5, 1.0], [1.0, 3.0]]
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
    ) -> "LinearAttention":
        """Projections with independent entries `N(0, 1/d)`, in the dtype of the tokens.

        Parameters
        ----------
        tokens
            `X`, for instance [`position_tokens`][], or [`OperatorTokens`][].
        heads, head_size
            Number of heads, and columns `d_h` of their projections.
        gain
            Every `γ_h` starts at ``gain / heads``; 0 starts at `P = ρ I`.
        skip
            `ρ` at the start.
        key
            For the projections.

        Raises
        ------
        ValueError
            As the class does.
        """
        tokens = as_tokens(tokens)
        return cls(tokens, *initial_weights(tokens, heads=heads, head_size=head_size, gain=gain, skip=skip, key=key))

    def factors(
        self, tokens: Float[Array, "size d"]
    ) -> tuple[Float[Array, "heads size features"], Float[Array, "heads size features"]]:
        queries, keys = self.projections(tokens)
        return queries / keys.shape[2] ** 0.5, keys

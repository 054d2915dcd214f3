"""What the attention preconditioners have in common."""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import ArrayLike, Key, Scalar
from ._abstract import AbstractPreconditioner
from ._tokens import OperatorTokens


def as_tokens(tokens: ArrayLike | OperatorTokens) -> Array | OperatorTokens:
    """Arrays of any library as arrays of JAX."""
    return tokens if isinstance(tokens, OperatorTokens) else jnp.asarray(tokens)


class AbstractAttention(AbstractPreconditioner):
    """A scaled identity plus heads of attention between the unknowns,

        P = ρ I + Σ_h γ_h A^(h)(X),    A^(h)_ij a function of q_i = x_i W_Q^(h) and of all k_j = x_j W_K^(h).

    Row `i` of `X` is the token of unknown `i`. The residual is one number per token, so that values and outputs of
    attention come to one gain per head. The skip `ρ I` is needed: the heads alone may have low rank, and `I − P H`
    contracts nothing in the kernel of `P`.

    An array of tokens gives one `P` for all tasks. [`OperatorTokens`][] give one per task, `P_i = P(X(H_i))`, by the
    same maps. The tokens are data: training leaves them as they are, see [`AbstractPreconditioner.trainable`][].

    Renumbering the tokens renumbers the matrix: for a permutation matrix `π`, `P(π X) = π P(X) πᵀ`. A renumbered
    operator has renumbered [`OperatorTokens`][] only if their coordinates and sketch are renumbered too.

    Attributes
    ----------
    tokens
        `X`, shape `(size, d)`, or [`OperatorTokens`][].
    query_weights, key_weights
        `W_Q`, `W_K`, shape `(heads, d, head_size)`.
    gains
        `γ`, shape `(heads,)`.
    skip
        `ρ`.

    Raises
    ------
    ValueError
        For shapes that do not fit, no heads, and arrays that do not share one floating dtype.
    """

    tokens: eqx.AbstractVar[Float[Array, "size d"] | OperatorTokens]
    query_weights: eqx.AbstractVar[Float[Array, "heads d head_size"]]
    key_weights: eqx.AbstractVar[Float[Array, "heads d head_size"]]
    gains: eqx.AbstractVar[Float[Array, " heads"]]
    skip: eqx.AbstractVar[Scalar]

    data_fields: ClassVar[tuple[str, ...]] = ("tokens",)

    def __check_init__(self):
        name, shape = type(self).__name__, self.query_weights.shape
        if len(self.tokens.shape) != 2 or min(self.tokens.shape) < 1:
            raise ValueError(
                f"Tokens have shape (size, d), one row per unknown, not empty; {name} got {self.tokens.shape}."
            )
        if len(shape) != 3 or min(shape) < 1 or shape[1] != self.tokens.shape[1]:
            raise ValueError(
                f"query_weights has shape (heads, d, head_size), none of them zero, with d = {self.tokens.shape[1]} "
                f"features of the tokens; {name} got {shape}."
            )
        if self.key_weights.shape != shape:
            raise ValueError(f"key_weights has the shape of query_weights, {shape}; got {self.key_weights.shape}.")
        if self.gains.shape != shape[:1] or self.skip.shape:
            raise ValueError(
                f"{shape[0]} heads take gains of shape {shape[:1]} and a scalar skip; {name} got shapes "
                f"{self.gains.shape} and {self.skip.shape}."
            )

    @property
    def size(self) -> int:
        return self.tokens.shape[0]

    @abc.abstractmethod
    def attention(self, tokens: Float[Array, "size d"]) -> Float[Array, "heads size size"]:
        """The maps `A^(h)(X)` for one set of tokens, without gains and skip."""

    @abc.abstractmethod
    def attend(
        self, tokens: Float[Array, "size d"], vectors: Float[Array, "vectors size"]
    ) -> Float[Array, "vectors size"]:
        """`Σ_h γ_h A^(h)(X) v` for several vectors and one set of tokens."""

    def matrix(
        self, operators: Float[Array, "tasks size size"]
    ) -> Float[Array, "size size"] | Float[Array, "tasks size size"]:
        self.check(operators)
        if isinstance(self.tokens, OperatorTokens):
            return jax.vmap(self._matrix)(self.tokens(operators))
        return self._matrix(self.tokens)

    def apply(
        self, operators: Float[Array, "tasks size size"], residuals: Float[Array, "tasks size"]
    ) -> Float[Array, "tasks size"]:
        self.check(operators, residuals)
        if isinstance(self.tokens, OperatorTokens):
            attended = jax.vmap(self.attend)(self.tokens(operators), residuals[:, None, :])[:, 0, :]
        else:
            attended = self.attend(self.tokens, residuals)
        return self.skip * residuals + attended

    def projections(
        self, tokens: Float[Array, "size d"]
    ) -> tuple[Float[Array, "heads size head_size"], Float[Array, "heads size head_size"]]:
        """Queries `X W_Q^(h)` and keys `X W_K^(h)`."""
        queries, keys = (
            jnp.einsum("id,hdk->hik", tokens, weights, precision="highest")
            for weights in (self.query_weights, self.key_weights)
        )
        return queries, keys

    def _matrix(self, tokens):
        heads = jnp.einsum("h,hij->ij", self.gains, self.attention(tokens), precision="highest")
        return self.skip * jnp.eye(self.size, dtype=self.dtype) + heads


class AbstractFeatureAttention(AbstractAttention):
    """Attention through features, `A^(h)(X) = U^(h) V^(h)ᵀ` with `U` and `V` of shape `(size, features)`.

    [`AbstractPreconditioner.apply`][] never forms a matrix of shape `(size, size)`: it takes
    `2 · size · features · heads` multiplications per task besides those for `U` and `V`. Each head has rank at most
    ``features``.
    """

    @abc.abstractmethod
    def factors(
        self, tokens: Float[Array, "size d"]
    ) -> tuple[Float[Array, "heads size features"], Float[Array, "heads size features"]]:
        """`U^(h)` and `V^(h)` for one set of tokens."""

    def attention(self, tokens: Float[Array, "size d"]) -> Float[Array, "heads size size"]:
        left, right = self.factors(tokens)
        return jnp.einsum("hif,hjf->hij", left, right, precision="highest")

    def attend(
        self, tokens: Float[Array, "size d"], vectors: Float[Array, "vectors size"]
    ) -> Float[Array, "vectors size"]:
        left, right = self.factors(tokens)
        moments = jnp.einsum("hjf,vj->hvf", right, vectors, precision="highest")
        return jnp.einsum("hif,hvf->vi", left, self.gains[:, None, None] * moments, precision="highest")


def initial_weights(
    tokens: Array | OperatorTokens,
    *,
    heads: int,
    head_size: int,
    gain: float,
    skip: float,
    key: Key,
) -> tuple[Array, Array, Array, Array]:
    """`W_Q`, `W_K` with entries `N(0, 1/d)`, gains `gain / heads` and the skip, in the dtype of the tokens.

    Raises
    ------
    ValueError
        For tokens that are not one row of features per unknown, or fewer than one head or entry of a head.
    """
    if len(tokens.shape) != 2 or tokens.shape[1] < 1:
        raise ValueError(f"Tokens have shape (size, d), one row per unknown; got {tokens.shape}.")
    if heads < 1 or head_size < 1:
        raise ValueError(f"Attention has at least one head of size one; got heads={heads}, head_size={head_size}.")
    shape, dtype = (2, heads, tokens.shape[1], head_size), tokens.dtype
    queries, keys = jax.random.normal(key, shape, dtype) / tokens.shape[1] ** 0.5
    return queries, keys, jnp.full(heads, gain / heads, dtype), jnp.asarray(skip, dtype)

"""A matrix whose every entry is a parameter."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ._abstract import AbstractPreconditioner


class FreeLinear(AbstractPreconditioner):
    """A free matrix: `P = Θ`, shared by all tasks.

    Attributes
    ----------
    entries
        `Θ`, shape `(size, size)`.

    Raises
    ------
    ValueError
        For entries that are not a square matrix of one floating dtype.

    >>> FreeLinear.initialise(2, skip=0.5).matrix(jnp.zeros((3, 2, 2))).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """

    entries: Float[Array, "size size"] = eqx.field(converter=jnp.asarray)

    data_fields: ClassVar[tuple[str, ...]] = ()

    def __check_init__(self):
        if self.entries.ndim != 2 or self.entries.shape[0] != self.entries.shape[1]:
            raise ValueError(f"entries is a square matrix; got shape {self.entries.shape}.")

    @classmethod
    def initialise(cls, size: int, *, skip: float = 1.0, dtype: jax.typing.DTypeLike = float) -> "FreeLinear":
        """`P = ρ I` with ``skip`` `ρ`.

        Raises
        ------
        ValueError
            For a size below one.
        """
        if size < 1:
            raise ValueError(f"A preconditioner has at least one unknown; got size={size}.")
        return cls(jnp.asarray(skip, dtype) * jnp.eye(size, dtype=dtype))

    @property
    def size(self) -> int:
        return self.entries.shape[0]

    def matrix(self, operators: Float[Array, "tasks size size"]) -> Float[Array, "size size"]:
        self.check(operators)
        return self.entries

    def apply(
        self, operators: Float[Array, "tasks size size"], residuals: Float[Array, "tasks size"]
    ) -> Float[Array, "tasks size"]:
        self.check(operators, residuals)
        return jnp.einsum("ij,tj->ti", self.entries, residuals, precision="highest")

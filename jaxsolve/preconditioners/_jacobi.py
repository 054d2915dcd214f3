"""The inverse of the diagonal."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Scalar
from ._classical import AbstractClassical, positive_diagonals


class Jacobi(AbstractClassical):
    """Diagonal scaling: `P_i = step · D_i^{-1}` with `D_i` the diagonal of `H_i`.

    It takes operators of any size, and renumbering the unknowns of an operator renumbers `P_i`.

    Attributes
    ----------
    step
        A scalar.

    Raises
    ------
    ValueError
        For a step that is not one floating number.
    RuntimeError
        As [`AbstractClassical`][] does.

    >>> operators = jnp.array([[[2.0, 1.0], [1.0, 4.0]]])
    >>> Jacobi.initialise().matrix(operators).tolist()
    [[[0.5, 0.0], [0.0, 0.25]]]
    """

    step: Scalar = eqx.field(converter=jnp.asarray)

    data_fields: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def initialise(cls, *, step: float = 1.0, dtype: jax.typing.DTypeLike = float) -> "Jacobi":
        """With a given step."""
        return cls(jnp.asarray(step, dtype))

    @property
    def size(self) -> None:
        return None

    def matrix(self, operators: Float[Array, "tasks size size"]) -> Float[Array, "tasks size size"]:
        self.check(operators)
        inverses = self.step / positive_diagonals(operators)
        return inverses[:, :, None] * jnp.eye(operators.shape[1], dtype=self.dtype)[None]

    def apply(
        self, operators: Float[Array, "tasks size size"], residuals: Float[Array, "tasks size"]
    ) -> Float[Array, "tasks size"]:
        self.check(operators, residuals)
        return self.step * residuals / positive_diagonals(operators)

"""The inverse of the mean of diagonally scaled operators."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._types import Scalar
from ._classical import AbstractClassical, positive_diagonals


class ScaledMeanInverse(AbstractClassical):
    """One shared inverse between diagonal scalings of each task,

        P_i = step · D_i^{-1/2} S D_i^{-1/2},    S = (mean_j D_j^{-1/2} H_j D_j^{-1/2})^{-1},

    with `D_i` the diagonal of `H_i` and the mean over the operators given to [`ScaledMeanInverse.from_family`][].

    Attributes
    ----------
    inverse
        `S`, shape `(size, size)`; data, not a parameter.
    step
        A scalar.

    Raises
    ------
    ValueError
        For an inverse that is not a square matrix, or a step that is not one number of its dtype.
    RuntimeError
        As [`AbstractClassical`][] does.

    >>> operators = jnp.array([[[2.0, 1.0], [1.0, 2.0]], [[4.0, 2.0], [2.0, 4.0]]])
    >>> preconditioner = ScaledMeanInverse.from_family(operators).fit_step(operators)
    >>> (preconditioner.matrix(operators) @ operators).round(12).tolist()
    [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]]
    """

    inverse: Float[Array, "size size"] = eqx.field(converter=jnp.asarray)
    step: Scalar = eqx.field(converter=jnp.asarray)

    data_fields: ClassVar[tuple[str, ...]] = ("inverse",)

    def __check_init__(self):
        if self.inverse.ndim != 2 or self.inverse.shape[0] != self.inverse.shape[1]:
            raise ValueError(f"inverse is a square matrix; got shape {self.inverse.shape}.")

    @classmethod
    def from_family(cls, operators: Float[Array, "tasks size size"], *, step: float = 1.0) -> "ScaledMeanInverse":
        """From the operators of the training tasks, in their dtype.

        Parameters
        ----------
        operators
            `H_j`; a positive diagonal is all they need.
        step
            See [`AbstractClassical.fit_step`][] for the best one.

        Raises
        ------
        ValueError
            For operators that are not square, or of no floating dtype.
        RuntimeError
            When run, for diagonal entries that are not positive and finite, and a scaled mean that is singular.
        """
        if operators.ndim != 3 or operators.shape[1] != operators.shape[2] or not operators.shape[0]:
            raise ValueError(f"operators have shape (tasks, size, size) with at least one task; got {operators.shape}.")
        scales = jax.lax.rsqrt(positive_diagonals(operators))
        inverse = jnp.linalg.inv(jnp.mean(scales[:, :, None] * operators * scales[:, None, :], axis=0))
        inverse = eqx.error_if(
            inverse,
            ~jnp.isfinite(inverse),
            "The mean of the scaled operators is singular, or has entries that are not finite. Remove a kernel that "
            "all operators share, such as the constants of a problem without boundary values.",
        )
        return cls(inverse, jnp.asarray(step, operators.dtype))

    @property
    def size(self) -> int:
        return self.inverse.shape[0]

    def matrix(self, operators: Float[Array, "tasks size size"]) -> Float[Array, "tasks size size"]:
        self.check(operators)
        scales = jax.lax.rsqrt(positive_diagonals(operators))
        return self.step * scales[:, :, None] * self.inverse[None] * scales[:, None, :]

    def apply(
        self, operators: Float[Array, "tasks size size"], residuals: Float[Array, "tasks size"]
    ) -> Float[Array, "tasks size"]:
        self.check(operators, residuals)
        scales = jax.lax.rsqrt(positive_diagonals(operators))
        return self.step * scales * jnp.einsum("ij,tj->ti", self.inverse, scales * residuals, precision="highest")

"""What the classical preconditioners have in common: a formula in the operator, and one step."""

from typing import TypeVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._types import Scalar
from ._abstract import AbstractPreconditioner

Classical = TypeVar("Classical", bound="AbstractClassical")


class AbstractClassical(AbstractPreconditioner):
    """A step times a formula in the operator, `P_i = step · P̂(H_i)`.

    Attributes
    ----------
    step
        A positive number; [`AbstractClassical.fit_step`][] chooses it.

    Raises
    ------
    RuntimeError
        From its methods, when they run on operators with a diagonal entry that is not positive and finite. Inside
        `equinox.filter_jit` the message stands alone; `jax.jit` wraps it in an error of its own, of another type.
    """

    step: eqx.AbstractVar[Scalar]

    def __check_init__(self):
        if self.step.shape:
            raise ValueError(f"step is one number; got shape {self.step.shape}.")

    def fit_step(self: Classical, operators: Float[Array, "tasks size size"]) -> Classical:
        """A copy with the step that minimises the largest contraction factor over the operators.

        With `λ_min` and `λ_max` the smallest and largest of all eigenvalues of all `P̂_i H_i`,

            step = 2 / (λ_min + λ_max)    minimises    max_i ρ(I − step · P̂_i H_i) = (λ_max − λ_min) / (λ_max + λ_min)

        over all steps, `ρ` being the spectral radius. The eigenvalues are those of the symmetric `Cᵀ H C` with
        `P̂ = C Cᵀ`. Nothing follows for operators that were not among these: the iteration may diverge on one.

        Raises
        ------
        ValueError
            As [`AbstractPreconditioner.matrix`][] does.
        RuntimeError
            When run, where the operators or the `P̂_i` are not symmetric (beyond `1000 ε` of the largest entry) or not
            positive definite: then no step contracts, or the rule does not hold.
        """
        unit = eqx.tree_at(lambda classical: classical.step, self, jnp.ones_like(self.step)).matrix(operators)
        factors = jnp.linalg.cholesky(unit)
        similar = jnp.einsum("tji,tjk,tkl->til", factors, operators, factors, precision="highest")
        eigenvalues = jnp.linalg.eigvalsh(similar)
        lowest, highest = eigenvalues.min(), eigenvalues.max()
        asymmetric = _asymmetric(operators) | _asymmetric(unit)
        step = eqx.error_if(
            2 / (lowest + highest),
            asymmetric | ~((lowest > 0) & jnp.isfinite(highest)),
            "fit_step needs operators and preconditioners that are symmetric and positive definite. Give another step.",
        )
        return eqx.tree_at(lambda classical: classical.step, self, step)


def positive_diagonals(operators: Float[Array, "tasks size size"]) -> Float[Array, "tasks size"]:
    """The diagonals; an error when run where an entry is not positive and finite."""
    diagonals = jnp.diagonal(operators, axis1=1, axis2=2)
    return eqx.error_if(
        diagonals,
        ~((diagonals > 0) & jnp.isfinite(diagonals)),
        "A diagonal preconditioner needs operators with positive, finite diagonal entries. Remove empty rows, and use "
        "another preconditioner for indefinite operators.",
    )


def _asymmetric(matrices: Float[Array, "tasks size size"]) -> Bool[Array, ""]:
    difference = jnp.abs(matrices - jnp.swapaxes(matrices, 1, 2)).max()
    return difference > 1e3 * jnp.finfo(matrices.dtype).eps * jnp.abs(matrices).max()

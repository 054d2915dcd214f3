"""The adjoint recursion is the gradient through all layers of the decoder."""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..datasets import airfoil_mesh
from ..evidence import AbstractTheory, Curve, IdentityRule, Kind
from ..pde import TriangleMesh, diffusion_family
from ..solver import adjoint_gradient, rollout, training_loss

INSTANCE_SEED = 21


class AdjointGradient(AbstractTheory):
    """`grad_P = Σ_i Σ_l λ_{i,l+1} r_{i,l}ᵀ` is the gradient of the training loss, at any depth.

    The loss is `1/(2 N K) Σ_i ‖z_{i,L} − z*_i‖²` over `N` tasks of size `K`, and the adjoints obey
    `λ_L = (z_L − z*) / (N K)` and `λ_l = λ_{l+1} − Hᵀ Pᵀ λ_{l+1}`. The measurement differentiates the steps of
    the rollout automatically, which uses none of the library's own derivatives.

    The operators are diffusion problems on the airfoil mesh with independent log-normal coefficients,
    `log a ~ N(0, sigma²)`, each row divided by its diagonal entry: `H_i = D_i^{−1} A_i` is not symmetric, nor is the
    shared preconditioner `P = step · (mean_i H_i)^{−1}`, so that a missing transpose shows. After the largest depth the
    iteration has not converged, and the gradient is far above its rounding errors. Where a backend orders the sums of
    both routes alike they agree to the last bit; another order changes the gradient by up to 30 machine epsilons at
    depth 32.

    The counterfeit leaves both transposes out of the recursion.

    Attributes
    ----------
    recursion
        What computes loss and gradient, called like [`jaxsolve.solver.adjoint_gradient`][].
    """

    preconditioner: Float[Array, "size size"]
    operators: Float[Array, "tasks size size"]
    solutions: Float[Array, "tasks size"]
    initial: Float[Array, "tasks size"]
    depths: tuple[int, ...] = eqx.field(static=True)
    recursion: Callable = eqx.field(static=True, default=partial(adjoint_gradient, method="accumulate"))
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.IDENTITY
    rule: ClassVar[IdentityRule] = IdentityRule(constant=128.0)
    source: ClassVar[str] = """@book{griewank2008evaluating,
  author = {Griewank, Andreas and Walther, Andrea},
  title = {Evaluating Derivatives: Principles and Techniques of Algorithmic Differentiation},
  edition = {2},
  publisher = {SIAM},
  year = {2008},
}"""
    statement: ClassVar[str] = (
        "The gradient of the training loss (half the mean square error over tasks and entries) with respect to the "
        "preconditioner is the sum over tasks and layers of adjoint times residual, in the Frobenius norm."
    )
    observables: ClassVar[tuple[str, ...]] = ("gradient",)
    assumptions: ClassVar[tuple[str, ...]] = (
        "one preconditioner for all layers and tasks",
        "the iteration has not converged to rounding error",
    )
    breaks_when: ClassVar[str] = "Error and gradient have shrunk to rounding error, where both routes return noise."
    effect: ClassVar[float] = 1e-2

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        tasks: int = 8,
        depths: tuple[int, ...] = (4, 16),
        step: float = 0.5,
        sigma: float = 1.0,
        instance_seed: int = INSTANCE_SEED,
    ) -> "AdjointGradient":
        """Eight tasks of 260 unknowns, up to 16 layers."""
        family = diffusion_family(TriangleMesh(*airfoil_mesh()), sigma=sigma, dtype=dtype)
        symmetric = np.asarray(family.operators(tasks, key=jax.random.key(instance_seed)), float)
        operators = symmetric / np.diagonal(symmetric, axis1=1, axis2=2)[:, :, None]
        solutions, initial = np.random.default_rng(instance_seed).standard_normal((2, *operators.shape[:2]))
        return cls(
            preconditioner=jnp.asarray(step * np.linalg.inv(operators.mean(axis=0)), dtype),
            operators=jnp.asarray(operators, dtype),
            solutions=jnp.asarray(solutions, dtype),
            initial=jnp.asarray(initial, dtype),
            depths=depths,
        )

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        tasks: int = 64,
        depths: tuple[int, ...] = (1, 2, 4, 8, 16, 32),
        **options,
    ) -> "AdjointGradient":
        """64 tasks of 260 unknowns, up to 32 layers; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, tasks=tasks, depths=depths, **options)

    def grid(self) -> Float[Array, " points"]:
        """The depths."""
        return jnp.asarray(self.depths, self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The adjoint recursion at each depth."""
        arguments = (self.preconditioner, self.operators, self._right_hand_sides(), self.initial, self.solutions)
        gradients = [self.recursion(*arguments, depth=depth)[1] for depth in self.depths]
        return {"gradient": Curve(grid, jnp.stack(gradients))}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Automatic differentiation of the loss of a rollout."""
        del key
        right_hand_sides = self._right_hand_sides()

        def loss(preconditioner, depth):
            final = rollout(preconditioner, self.operators, right_hand_sides, self.initial, depth=depth, method="scan")
            return training_loss(final, self.solutions)

        gradients = [jax.grad(loss)(self.preconditioner, depth) for depth in self.depths]
        return {"gradient": Curve(grid, jnp.stack(gradients))}

    def counterfeit(self) -> "AdjointGradient":
        """The recursion `λ_l = λ_{l+1} − H P λ_{l+1}`."""
        return dataclasses.replace(self, recursion=_without_transposes)

    def _right_hand_sides(self) -> Float[Array, "tasks size"]:
        return jnp.einsum("tij,tj->ti", self.operators, self.solutions, precision="highest")


def _without_transposes(preconditioner, operators, right_hand_sides, initial, solutions, *, depth):
    state, residuals = initial, []
    for _ in range(depth):
        residuals.append(right_hand_sides - jnp.einsum("tij,tj->ti", operators, state))
        state = state + jnp.einsum("ij,tj->ti", preconditioner, residuals[-1])
    adjoint = (state - solutions) / solutions.size
    gradient = jnp.zeros_like(preconditioner)
    for residual in reversed(residuals):
        gradient = gradient + jnp.einsum("ti,tj->ij", adjoint, residual)
        adjoint = adjoint - jnp.einsum("tij,jk,tk->ti", operators, preconditioner, adjoint)
    return training_loss(state, solutions), gradient

"""A decoder with frozen preconditioner is a matrix power acting on its first error."""

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
from ..solver import trajectory

INSTANCE_SEED = 20


class RichardsonIdentity(AbstractTheory):
    """`z_l − z* = (I − P H)^l (z_0 − z*)` at every depth `l`.

    The operators are diffusion problems on the airfoil mesh with independent log-normal coefficients,
    `log a ~ N(0, sigma²)`. With `D_i` the diagonal of `H_i`, each task has the frozen preconditioner

        P_i = step · D_i^{−1/2} (mean_j D_j^{−1/2} H_j D_j^{−1/2})^{−1} D_i^{−1/2}.

    Starts and solutions are standard normal, and right-hand sides are `H z*`. The prediction multiplies the matrices
    out; the measurement runs the iteration and subtracts the solution.

    The counterfeit takes the product in the wrong order, `I − H P`. That matrix has the same eigenvalues, so that no
    convergence rate tells the two apart: only the error vectors do.
    """

    preconditioners: Float[Array, "tasks size size"]
    operators: Float[Array, "tasks size size"]
    solutions: Float[Array, "tasks size"]
    initial: Float[Array, "tasks size"]
    depth: int = eqx.field(static=True)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.IDENTITY
    rule: ClassVar[IdentityRule] = IdentityRule(constant=64.0, relative_to="curve")
    source: ClassVar[str] = """@article{richardson1911approximate,
  author = {Richardson, Lewis Fry},
  title = {The Approximate Arithmetical Solution by Finite Differences of Physical Problems Involving Differential
    Equations, with an Application to the Stresses in a Masonry Dam},
  journal = {Philosophical Transactions of the Royal Society of London. Series A},
  volume = {210},
  pages = {307--357},
  year = {1911},
}"""
    statement: ClassVar[str] = (
        "The error of a preconditioned Richardson iteration after l steps is (I - PH)^l times its first error, at "
        "every depth and for every task, relative to the norm of the first errors of all tasks."
    )
    observables: ClassVar[tuple[str, ...]] = ("error",)
    assumptions: ClassVar[tuple[str, ...]] = (
        "the preconditioner does not change from step to step",
        "the right-hand side is H z*",
    )
    breaks_when: ClassVar[str] = "The preconditioner depends on the iterate or on the layer."
    effect: ClassVar[float] = 1e-2

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        tasks: int = 8,
        depth: int = 16,
        step: float = 0.8,
        sigma: float = 1.0,
        instance_seed: int = INSTANCE_SEED,
    ) -> "RichardsonIdentity":
        """Eight tasks of 260 unknowns, 16 steps."""
        family = diffusion_family(TriangleMesh(*airfoil_mesh()), sigma=sigma, dtype=dtype)
        operators = family.operators(tasks, key=jax.random.key(instance_seed))
        matrices = np.asarray(operators, float)
        scale = 1 / np.sqrt(np.diagonal(matrices, axis1=1, axis2=2))
        scaled = scale[:, :, None] * matrices * scale[:, None, :]
        preconditioners = step * scale[:, :, None] * np.linalg.inv(scaled.mean(axis=0)) * scale[:, None, :]
        solutions, initial = np.random.default_rng(instance_seed).standard_normal((2, *scale.shape))
        return cls(
            preconditioners=jnp.asarray(preconditioners, dtype),
            operators=operators,
            solutions=jnp.asarray(solutions, dtype),
            initial=jnp.asarray(initial, dtype),
            depth=depth,
        )

    @classmethod
    def full(
        cls, *, dtype: jax.typing.DTypeLike = float, tasks: int = 64, depth: int = 48, **options
    ) -> "RichardsonIdentity":
        """64 tasks of 260 unknowns, 48 steps; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, tasks=tasks, depth=depth, **options)

    def grid(self) -> Float[Array, " points"]:
        """Depths 0 to ``depth``."""
        return jnp.arange(self.depth + 1, dtype=self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """Powers of `I − P H`, formed as matrices, times the first error."""
        errors = _power_errors(self.preconditioners, self.operators, self.initial - self.solutions, self.depth)
        return {"error": Curve(grid, _at(grid, errors))}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """The iterates minus the solution."""
        del key
        right_hand_sides = jnp.einsum("tij,tj->ti", self.operators, self.solutions, precision="highest")
        iterates = trajectory(self.preconditioners, self.operators, right_hand_sides, self.initial, depth=self.depth)
        return {"error": Curve(grid, _at(grid, iterates - self.solutions[None]))}

    def counterfeit(self) -> "RichardsonIdentity":
        """The factors of the product exchanged: `I − H P`."""
        return eqx.tree_at(
            lambda theory: (theory.preconditioners, theory.operators), self, (self.operators, self.preconditioners)
        )


@partial(jax.jit, static_argnums=3)
def _power_errors(preconditioners, operators, first, depth):
    product = partial(jnp.matmul, precision="highest")
    identity = jnp.broadcast_to(jnp.eye(first.shape[1], dtype=first.dtype), operators.shape)
    iteration = identity - product(preconditioners, operators)

    def multiply(power, _):
        return product(iteration, power), product(power, first[:, :, None])[:, :, 0]

    _, errors = jax.lax.scan(multiply, identity, length=depth + 1)
    return errors


def _at(grid, values):
    return values.at[grid.astype(int)].get(mode="fill", fill_value=jnp.nan)

"""The risk of a frozen decoder at each depth, averaged over right-hand sides without sampling any."""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from .._types import Key
from ..certificates import depth_risk
from ..evidence import AbstractTheory, Curve, Kind, PopulationRule
from ..preconditioners import FreeLinear
from ..solver import apply_operators, pretrain, trajectory, wishart_operators

INSTANCE_SEED = 24


def _squared_norm(power: Float[Array, "tasks size size"]) -> Float[Array, " tasks"]:
    return jnp.sum(power**2, axis=(1, 2))


def _squared_eigenvalues(power: Float[Array, "tasks size size"]) -> Float[Array, " tasks"]:
    return jnp.sum(jnp.abs(jnp.linalg.eigvals(power)) ** 2, axis=1)


class DecoderRisk(AbstractTheory):
    """`E ‖e_l‖² / K = Tr[(I − P H)^l (I − P H)^{lᵀ}] / K`, averaged over held-out operators, for `z* ~ N(0, I)`.

    The risk is a mean over unknowns and tasks without the factor 1/2: at depth `L` twice the training loss. The
    expectation is over solutions alone, given the operators; the start is zero and `e_0 = −z*`.

    The operators are `H = S^{1/2} W S^{1/2}` with `W` a Wishart matrix over its `8 K` degrees of freedom and `S`
    diagonal from 0.1 to 1, equally spaced in the logarithm. Building a configuration trains a free matrix `P` on the
    loss at depth `L`, by Adam with a learning rate that falls to zero along a cosine, and freezes it; `P`
    and the held-out operators are fields. A matrix trained on few tasks generalises unevenly: a handful of held-out
    operators, whose powers are far from normal, carry most of the risk at the last depth. Another draw of operators
    has another risk.

    The counterfeit takes the spectrum for the matrix, `Σ_k |λ_k|^{2l} / K` with the eigenvalues of `I − P H`.

    Attributes
    ----------
    preconditioner
        The frozen `P`.
    operators
        `H` of the held-out tasks.
    energy
        What is averaged over tasks and divided by `K`, from the power of `I − P H`.
    """

    preconditioner: Float[Array, "size size"]
    operators: Float[Array, "tasks size size"]
    depth: int = eqx.field(static=True)
    energy: Callable = eqx.field(static=True, default=_squared_norm)
    replicates: int = eqx.field(static=True, default=200)

    kind: ClassVar[Kind] = Kind.POPULATION
    rule: ClassVar[PopulationRule] = PopulationRule()
    source: ClassVar[str] = """@book{saad2003iterative,
  author = {Saad, Yousef},
  title = {Iterative Methods for Sparse Linear Systems},
  edition = {2},
  publisher = {SIAM},
  year = {2003},
}"""
    statement: ClassVar[str] = (
        "The risk of a frozen decoder after l steps, the mean square of the error over unknowns and given operators, "
        "without 1/2, is the mean over operators of the squared Frobenius norm of (I - PH)^l divided by the size, "
        "for solutions with identity covariance and a start at zero."
    )
    observables: ClassVar[tuple[str, ...]] = ("risk",)
    assumptions: ClassVar[tuple[str, ...]] = (
        "solutions have mean zero and identity covariance and are independent of the operators",
        "the preconditioner does not change from step to step",
    )
    breaks_when: ClassVar[str] = "Solutions depend on the operators, or prefer directions."
    effect: ClassVar[float] = 0.05

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 16,
        tasks: int = 64,
        held_out: int = 64,
        depth: int = 8,
        steps: int = 40,
        learning_rate: float = 1e-2,
        instance_seed: int = INSTANCE_SEED,
        replicates: int = 200,
    ) -> "DecoderRisk":
        """64 tasks to train on for 40 steps, and 200 draws of solutions for 64 held-out operators."""
        random = np.random.default_rng(instance_seed)
        factors = random.standard_normal((tasks + held_out, size, 8 * size))
        operators = jnp.asarray(wishart_operators(factors, np.logspace(-1, 0, size)), dtype)
        solutions = jnp.asarray(random.standard_normal((tasks, size)), dtype)
        preconditioner = FreeLinear(np.eye(size, dtype=dtype))
        if steps:
            preconditioner = pretrain(
                preconditioner,
                operators[:tasks],
                apply_operators(operators[:tasks], solutions),
                jnp.zeros_like(solutions),
                solutions,
                depth=depth,
                optimizer=optax.adam(optax.cosine_decay_schedule(learning_rate, steps)),
                steps=steps,
            ).parameters
        return cls(
            preconditioner=preconditioner.entries, operators=operators[tasks:], depth=depth, replicates=replicates
        )

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        tasks: int = 256,
        held_out: int = 512,
        steps: int = 1500,
        replicates: int = 1000,
        **options,
    ) -> "DecoderRisk":
        """256 tasks, 1500 steps, 1000 draws for 512 held-out operators; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, tasks=tasks, held_out=held_out, steps=steps, replicates=replicates, **options)

    def grid(self) -> Float[Array, " points"]:
        """Depths 0 to ``depth``."""
        return jnp.arange(self.depth + 1, dtype=self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """Powers of `I − P H`, formed as matrices."""
        product = partial(jnp.matmul, precision="highest")
        identity = jnp.broadcast_to(jnp.eye(self.operators.shape[1], dtype=self.dtype), self.operators.shape)
        iteration = identity - product(self.preconditioner[None], self.operators)

        def multiply(power, _):
            return product(iteration, power), jnp.mean(self.energy(power)) / power.shape[1]

        _, risks = jax.lax.scan(multiply, identity, length=self.depth + 1)
        return {"risk": Curve(grid, _at(grid, risks))}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """The risk of the iterates for one right-hand side per held-out task."""
        tasks, size = self.operators.shape[:2]
        # Drawn flat: several axes under vmap take three times as long to compile.
        solutions = jax.random.normal(key, (tasks * size,), self.dtype).reshape(tasks, size)
        right_hand_sides = apply_operators(self.operators, solutions)
        initial = jnp.zeros_like(solutions)
        iterates = trajectory(self.preconditioner, self.operators, right_hand_sides, initial, depth=self.depth)
        return {"risk": Curve(grid, _at(grid, depth_risk(iterates, solutions)))}

    def counterfeit(self) -> "DecoderRisk":
        """Squared eigenvalues in place of the squared norm."""
        return dataclasses.replace(self, energy=_squared_eigenvalues)


def _at(grid, values):
    return values.at[grid.astype(int)].get(mode="fill", fill_value=jnp.nan)

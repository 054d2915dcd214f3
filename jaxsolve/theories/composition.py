"""The error behind an encoder is a matrix power of the estimated system plus the effect of the wrong operator."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..certificates import prompted_diffusion
from ..evidence import AbstractTheory, Curve, IdentityRule, Kind
from ..solver import trajectory

INSTANCE_SEED = 27


class Composition(AbstractTheory):
    """`x_l − x* = (I − P Â)^l (x_0 − x†) + Â⁻¹ (A − Â) x*`, and its risk, at every depth.

    The systems are diffusion problems on a line with four coefficients, `A` by the true ones and `Â` by those that a
    least-squares encoder reads from a short noisy prompt; `x† = Â⁻¹ b` and `b = A x*`. The decoder runs on `Â` from
    zero, with `P` the inverse of the mean operator, times 0.9 and disturbed.

    That `x_l − x*` is the sum of `x_l − x†` and `x† − x*` is algebra and no test. So the measurement knows neither
    `x†` nor `Â⁻¹`: it runs the iteration and subtracts `x*`. The prediction forms the power as a matrix, and the effect
    of the wrong operator by a direct solve of `Â` with the right-hand side `(A − Â) x*`. The risk is a mean over tasks
    and unknowns without 1/2, predicted as decoder part plus floor plus twice their product.

    The counterfeit puts `A` in the place of `Â`.
    """

    preconditioner: Float[Array, "size size"]
    estimates: Float[Array, "tasks size size"]
    operators: Float[Array, "tasks size size"]
    solutions: Float[Array, "tasks size"]
    depth: int = eqx.field(static=True)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.IDENTITY
    rule: ClassVar[IdentityRule] = IdentityRule(constant=512.0, relative_to="curve")
    source: ClassVar[str] = """@book{saad2003iterative,
  author = {Saad, Yousef},
  title = {Iterative Methods for Sparse Linear Systems},
  edition = {2},
  publisher = {SIAM},
  year = {2003},
}"""
    statement: ClassVar[str] = (
        "The error of a decoder on estimated operators is (I - P A^)^l times the first error against the estimated "
        "solution, plus A^^-1 (A - A^) x*; its risk (a mean over tasks and unknowns, without 1/2) is the sum of "
        "decoder part, floor and interaction, relative to the largest on the curve."
    )
    observables: ClassVar[tuple[str, ...]] = ("error", "risk")
    assumptions: ClassVar[tuple[str, ...]] = (
        "the preconditioner does not change from step to step",
        "the estimated operators are not singular",
        "the right-hand side is that of the true operator",
    )
    breaks_when: ClassVar[str] = "The decoder uses the true operator, or the estimate changes along the iteration."
    effect: ClassVar[float] = 1e-2

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        tasks: int = 32,
        size: int = 16,
        prompt_size: int = 8,
        noise: float = 0.2,
        depth: int = 16,
        instance_seed: int = INSTANCE_SEED,
    ) -> "Composition":
        """32 tasks of 16 unknowns, prompts of eight pairs, 16 steps."""
        random = np.random.default_rng(instance_seed)
        drawn = prompted_diffusion(tasks, size=size, prompt_size=prompt_size, noise=noise, generator=random)
        disturbed = np.eye(size) + 0.1 * random.standard_normal((size, size)) / np.sqrt(size)
        preconditioner = 0.9 * np.linalg.inv(drawn.reference) @ disturbed
        return cls(
            preconditioner=jnp.asarray(preconditioner, dtype),
            estimates=jnp.asarray(drawn.estimates, dtype),
            operators=jnp.asarray(drawn.operators, dtype),
            solutions=jnp.asarray(drawn.solutions, dtype),
            depth=depth,
        )

    @classmethod
    def full(
        cls, *, dtype: jax.typing.DTypeLike = float, tasks: int = 512, size: int = 32, depth: int = 32, **options
    ) -> "Composition":
        """512 tasks of 32 unknowns, 32 steps; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, tasks=tasks, size=size, depth=depth, **options)

    def grid(self) -> Float[Array, " points"]:
        """Depths 0 to ``depth``."""
        return jnp.arange(self.depth + 1, dtype=self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """Powers of `I − P Â` and direct solves."""
        estimates, operators, solutions = self.estimates, self.operators, self.solutions
        sides = jnp.einsum("tij,tj->ti", operators, solutions, precision="highest")
        estimated = jnp.linalg.solve(estimates, sides[:, :, None])
        wrong = jnp.einsum("tij,tj->ti", operators - estimates, solutions, precision="highest")
        floor = jnp.linalg.solve(estimates, wrong[:, :, None])[:, :, 0]
        product = jnp.matmul(self.preconditioner[None], estimates, precision="highest")
        iteration = jnp.eye(len(self.preconditioner), dtype=self.dtype)[None] - product

        def multiply(error, _):
            return jnp.matmul(iteration, error, precision="highest"), error[:, :, 0]

        _, unfinished = jax.lax.scan(multiply, -estimated, length=self.depth + 1)
        parts = unfinished**2, jnp.broadcast_to(floor[None] ** 2, unfinished.shape), 2 * unfinished * floor[None]
        risk = sum(jnp.mean(part, axis=(1, 2)) for part in parts)
        return {"error": Curve(grid, unfinished + floor[None]), "risk": Curve(grid, jnp.asarray(risk))}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """The iterates on `Â` minus the solution for `A`."""
        del key
        sides = jnp.einsum("tij,tj->ti", self.operators, self.solutions, precision="highest")
        initial = jnp.zeros_like(self.solutions)
        errors = trajectory(self.preconditioner, self.estimates, sides, initial, depth=self.depth)
        errors = errors - self.solutions[None]
        return {"error": Curve(grid, errors), "risk": Curve(grid, jnp.mean(errors**2, axis=(1, 2)))}

    def counterfeit(self) -> "Composition":
        """The decoder and its floor of the true operator."""
        return eqx.tree_at(lambda theory: theory.estimates, self, self.operators)

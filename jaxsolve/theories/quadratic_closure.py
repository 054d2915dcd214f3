"""Training of a preconditioner through one step has a closed form in steps and in time."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key, Scalar
from ..curves import OneStepMoments, one_step_descent, one_step_flow, one_step_moments, population_descent
from ..evidence import AbstractTheory, Curve, IdentityRule, Kind
from ..solver import rollout, training_loss

INSTANCE_SEED = 51


class QuadraticClosure(AbstractTheory):
    """With one step, `P_s − P* = (P_0 − P*)(I − η C)^s` and `P_t − P* = (P_0 − P*) exp(−t C)`, `C = E[H S Hᵀ]/K`.

    This holds for every ensemble of tasks: the operators here are not symmetric and do not commute, nor does the start
    with any of them. The optimum is `P* = E[S Hᵀ] E[H S Hᵀ]⁻¹`.

    Descent is measured by the gradient of the population. The flow is measured without it: the loss of the decoder is
    differentiated twice by JAX, over first errors whose second moment is exactly `S`, and the affine equation for the
    entries of `P` is solved by the exponential of one matrix.

    The counterfeit has a curvature that is 10 % too large.

    Attributes
    ----------
    curvature_factor
        1; what the prediction multiplies `C` by.
    """

    initial: Float[Array, "size size"]
    operators: Float[Array, "tasks size size"]
    moment_root: Float[Array, "size size"]
    learning_rate: Scalar
    curvature_factor: Scalar
    steps: int = eqx.field(static=True)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.IDENTITY
    rule: ClassVar[IdentityRule] = IdentityRule(constant=1024.0)
    source: ClassVar[str] = """@article{saxe2019mathematical,
  author = {Saxe, Andrew M. and McClelland, James L. and Ganguli, Surya},
  title = {A Mathematical Theory of Semantic Development in Deep Neural Networks},
  journal = {Proceedings of the National Academy of Sciences},
  volume = {116},
  number = {23},
  year = {2019},
}"""
    statement: ClassVar[str] = (
        "For a decoder of one step the preconditioner after any number of descent steps, and at any time of gradient "
        "flow, on the population loss (half the mean square over unknowns) is that of one matrix power or exponential."
    )
    observables: ClassVar[tuple[str, ...]] = ("descent", "flow")
    assumptions: ClassVar[tuple[str, ...]] = (
        "a decoder of one step",
        "first errors independent of the operators",
        "a stable learning rate, so that rounding errors do not grow",
    )
    breaks_when: ClassVar[str] = "The decoder has two steps or more: the loss is no longer quadratic in P."
    effect: ClassVar[float] = 1e-3

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 4,
        tasks: int = 6,
        steps: int = 200,
        learning_rate: float = 0.5,
        instance_seed: int = INSTANCE_SEED,
    ) -> "QuadraticClosure":
        """Six tasks of four unknowns, 200 steps."""
        random = np.random.default_rng(instance_seed)
        operators = np.eye(size) + 0.5 * random.standard_normal((tasks, size, size)) / size**0.5
        initial, root = random.standard_normal((2, size, size)) / size**0.5
        return cls(
            initial=jnp.asarray(initial, dtype),
            operators=jnp.asarray(operators, dtype),
            moment_root=jnp.asarray(root, dtype),
            learning_rate=jnp.asarray(learning_rate, dtype),
            curvature_factor=jnp.asarray(1.0, dtype),
            steps=steps,
        )

    @classmethod
    def full(cls, *, dtype: jax.typing.DTypeLike = float, size: int = 8, tasks: int = 64, **options):
        """64 tasks of eight unknowns; the other options are those of ``quick``."""
        return cls.quick(dtype=dtype, size=size, tasks=tasks, **options)

    def grid(self) -> Float[Array, " points"]:
        """Numbers of steps; times are these by the learning rate."""
        return jnp.asarray([1, 2, 5, 20, 50, self.steps], self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The closed forms."""
        moments = one_step_moments(self.operators, self._second_moment())
        moments = OneStepMoments(self.curvature_factor * moments.curvature, moments.slope)
        steps = grid.astype(int)
        descent = one_step_descent(self.initial, moments, learning_rate=self.learning_rate, steps=steps)
        flow = one_step_flow(self.initial, moments, times=self.learning_rate * grid)
        return {"descent": Curve(grid, descent.preconditioner), "flow": Curve(grid, flow)}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Descent step by step, and the flow of the decoder's own loss."""
        del key
        states = population_descent(
            self.initial,
            self.operators,
            self._second_moment(),
            depth=1,
            learning_rate=self.learning_rate,
            steps=self.steps,
        )
        size, tasks = len(self.initial), len(self.operators)
        errors = jnp.tile(size**0.5 * self.moment_root.T, (tasks, 1))
        operators = jnp.repeat(self.operators, size, axis=0)
        zeros = jnp.zeros_like(errors)

        def slope(entries):
            def loss(matrix):
                return training_loss(rollout(matrix, operators, zeros, errors, depth=1), zeros)

            return -jax.grad(loss)(entries.reshape(size, size)).ravel()

        start = self.initial.ravel()
        offset = slope(jnp.zeros_like(start))
        generator = jnp.zeros((size**2 + 1, size**2 + 1), self.dtype)
        generator = generator.at[:-1, :-1].set(jax.jacrev(slope)(start)).at[:-1, -1].set(offset)
        extended = jnp.append(start, 1)

        def at(time):
            power = jax.scipy.linalg.expm(time * generator, max_squarings=40)
            return jnp.matmul(power, extended, precision="highest")[:-1].reshape(size, size)

        flow = jax.lax.map(at, self.learning_rate * grid)
        return {"descent": Curve(grid, states[grid.astype(int)]), "flow": Curve(grid, flow)}

    def counterfeit(self) -> "QuadraticClosure":
        """The curvature is 10 % too large."""
        return dataclasses.replace(self, curvature_factor=1.1 * self.curvature_factor)

    def _second_moment(self) -> Float[Array, "size size"]:
        return jnp.matmul(self.moment_root, self.moment_root.T, precision="highest")

"""Scaling the centred output makes the training of a learned solver lazy, at a loss that falls by a third."""

import dataclasses
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..curves import RegressionSolver, descent_curve, frozen_kernel_curve, tangent_kernel
from ..evidence import AbstractTheory, Curve, Kind, LimitRule

INSTANCE_SEED = 19


class LazyScaling(AbstractTheory):
    """The loss curve tends to that of the frozen tangent kernel as `1/α`, with `α` the scale of the centred output.

    Descent with the learning rate `η / α²` on the mean square of

        r(θ) = α (z_L(θ) − z_L(θ_0)) + z_L(θ_0) − z*

    has one prediction for all scales, the curve of the kernel `J_0 J_0ᵀ` at the learning rate `η`, and one drop of the
    loss, here of more than a quarter. That the error vanishes at a fixed drop tells the lazy regime from a run that is
    too short to leave its start. The decoder has a non-stationary Flexformer as preconditioner and solves tasks of
    kernel ridge regression. The first correction to the curve is of the order of the parameters' motion, `1/α`.

    The counterfeit has a kernel that is 10 % too large: its error does not vanish.

    Attributes
    ----------
    solver
        Decoder, model at the start and tasks.
    tangent
        What computes `J_0 J_0ᵀ`, called like [`jaxsolve.curves.tangent_kernel`][].
    """

    solver: RegressionSolver
    scales: Float[Array, " points"]
    learning_rate: Float[Array, ""]
    steps: int = eqx.field(static=True)
    tangent: Callable = eqx.field(static=True, default=tangent_kernel)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.LIMIT
    rule: ClassVar[LimitRule] = LimitRule(exponent=-1.0, band=0.1)
    source: ClassVar[str] = """@inproceedings{chizat2019lazy,
  author = {Chizat, L{\\'e}na{\\"i}c and Oyallon, Edouard and Bach, Francis},
  title = {On Lazy Training in Differentiable Programming},
  booktitle = {Advances in Neural Information Processing Systems},
  volume = {32},
  year = {2019},
}"""
    statement: ClassVar[str] = (
        "With the centred output scaled by alpha and the learning rate divided by alpha squared, the loss curve (half "
        "the mean square over tasks and unknowns) differs from that of the frozen tangent kernel by an error that "
        "falls as 1/alpha, while the loss drops by one share at all scales, more than a quarter."
    )
    observables: ClassVar[tuple[str, ...]] = ("loss",)
    assumptions: ClassVar[tuple[str, ...]] = (
        "full-batch gradient descent without momentum",
        "a model that is differentiable twice in its parameters, with a fixed number of steps",
    )
    breaks_when: ClassVar[str] = (
        "The output is not centred, or alpha is so large that the differences are rounding errors."
    )
    effect: ClassVar[float] = 0.2

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        tasks: int = 8,
        size: int = 12,
        depth: int = 6,
        steps: int = 200,
        scales: tuple[float, ...] = (2.0, 4.0, 8.0, 16.0),
        learning_rate: float = 1e-2,
        features: int = 8,
        head_size: int = 4,
        instance_seed: int = INSTANCE_SEED,
    ) -> "LazyScaling":
        """Eight tasks of 12 unknowns, four scales."""
        solver = RegressionSolver.draw(
            tasks,
            size,
            depth=depth,
            features=features,
            head_size=head_size,
            dtype=dtype,
            generator=np.random.default_rng(instance_seed),
        )
        return cls(
            solver=solver,
            scales=jnp.asarray(scales, dtype),
            learning_rate=jnp.asarray(learning_rate, dtype),
            steps=steps,
        )

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        tasks: int = 16,
        size: int = 12,
        scales: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0),
        features: int = 16,
        head_size: int = 12,
        **options,
    ) -> "LazyScaling":
        """16 tasks of 12 unknowns, two heads of size 8 with 16 frequencies, scales from 1 to 32."""
        sizes = {"tasks": tasks, "size": size, "features": features, "head_size": head_size}
        return cls.quick(dtype=dtype, scales=scales, **sizes, **options)

    def grid(self) -> Float[Array, " points"]:
        """The scales."""
        return self.scales

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The curve under the kernel of the start, the same at every scale."""
        kernel, start = self.solver.linearised(self.tangent)
        steps = jnp.arange(self.steps + 1)
        loss = frozen_kernel_curve(kernel, start, learning_rate=self.learning_rate, steps=steps).loss
        return {"loss": Curve(grid, jnp.broadcast_to(loss[None], (grid.shape[0], self.steps + 1)))}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Descent at each scale."""
        del key

        def descend(scale):
            learning_rate = self.learning_rate / scale**2
            return descent_curve(*self.solver.residual(scale), learning_rate=learning_rate, steps=self.steps)

        return {"loss": Curve(grid, jax.vmap(descend)(grid))}

    def counterfeit(self) -> "LazyScaling":
        """The kernel is 10 % too large."""
        return dataclasses.replace(self, tangent=_too_large)


def _too_large(residual, parameters):
    return 1.1 * tangent_kernel(residual, parameters)

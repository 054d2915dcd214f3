"""The error of the linearised training curve grows with the square of what the loss has dropped."""

import dataclasses
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..curves import RegressionSolver, descent_curve, frozen_kernel_curve, loss_drop, tangent_kernel
from ..evidence import AbstractTheory, Curve, Kind, LimitRule

INSTANCE_SEED = 19


class LinearisationError(AbstractTheory):
    """`‖ℓ_NTK − ℓ‖ ∝ (1 − ℓ_S/ℓ_0)²` as the drop of the loss tends to zero.

    The setting is that of descent on a decoder with a non-stationary Flexformer as preconditioner and tasks of kernel
    ridge regression, at a fixed number of steps; `ℓ_NTK` is the loss curve under the tangent kernel of the start. The
    grid are drops of `ℓ_NTK`, each with the learning rate that gives it. A run
    that hardly moves has an error as small as is liked, whatever the model: an error has to be read next to the drop.
    The relative error over the curve is about a quarter of the squared drop here.

    The counterfeit has a kernel that is 10 % too large, whose error is of first order in the drop.

    Attributes
    ----------
    solver
        Decoder, model at the start and tasks.
    learning_rates, drops
        `η`, and the drops of `ℓ_NTK` that belong to them.
    tangent
        What computes `J_0 J_0ᵀ`, called like [`jaxsolve.curves.tangent_kernel`][].
    """

    solver: RegressionSolver
    learning_rates: Float[Array, " points"]
    drops: Float[Array, " points"]
    steps: int = eqx.field(static=True)
    tangent: Callable = eqx.field(static=True, default=tangent_kernel)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.LIMIT
    rule: ClassVar[LimitRule] = LimitRule(exponent=2.0, band=0.15)
    source: ClassVar[str] = """@inproceedings{chizat2019lazy,
  author = {Chizat, L{\\'e}na{\\"i}c and Oyallon, Edouard and Bach, Francis},
  title = {On Lazy Training in Differentiable Programming},
  booktitle = {Advances in Neural Information Processing Systems},
  volume = {32},
  year = {2019},
}"""
    statement: ClassVar[str] = (
        "At a fixed number of steps the distance of the loss curve (half the mean square over tasks and unknowns) from "
        "the curve of the frozen tangent kernel is proportional to the square of the share by which the loss drops."
    )
    observables: ClassVar[tuple[str, ...]] = ("loss",)
    assumptions: ClassVar[tuple[str, ...]] = (
        "full-batch gradient descent without momentum",
        "drops of a few per cent",
    )
    breaks_when: ClassVar[str] = "The model is affine in its parameters, or the loss drops by a third or more."
    effect: ClassVar[float] = 0.3

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        tasks: int = 8,
        size: int = 12,
        depth: int = 6,
        steps: int = 200,
        learning_rates: tuple[float, ...] = (2e-4, 4e-4, 8e-4, 1.6e-3),
        features: int = 8,
        head_size: int = 4,
        instance_seed: int = INSTANCE_SEED,
    ) -> "LinearisationError":
        """Eight tasks of 12 unknowns, drops of about 1 to 8 %."""
        solver = RegressionSolver.draw(
            tasks,
            size,
            depth=depth,
            features=features,
            head_size=head_size,
            dtype=dtype,
            generator=np.random.default_rng(instance_seed),
        )
        rates = jnp.asarray(learning_rates, dtype)
        drops = loss_drop(_linearised_curves(solver, rates, steps, tangent_kernel))
        return cls(solver=solver, learning_rates=rates, drops=drops, steps=steps)

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        tasks: int = 16,
        learning_rates: tuple[float, ...] = (5e-5, 1e-4, 2e-4, 4e-4, 8e-4, 1.6e-3),
        features: int = 16,
        head_size: int = 8,
        **options,
    ) -> "LinearisationError":
        """16 tasks of 12 unknowns, 803 parameters, drops of about 0.3 to 8 %."""
        sizes = {"tasks": tasks, "features": features, "head_size": head_size}
        return cls.quick(dtype=dtype, learning_rates=learning_rates, **sizes, **options)

    def grid(self) -> Float[Array, " points"]:
        """The drops of the linearised curve."""
        return self.drops

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The curve under the kernel of the start, at each learning rate."""
        return {"loss": Curve(grid, _linearised_curves(self.solver, self.learning_rates, self.steps, self.tangent))}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Descent at each learning rate."""
        del key
        residual, parameters = self.solver.residual()
        descend = jax.vmap(lambda rate: descent_curve(residual, parameters, learning_rate=rate, steps=self.steps))
        return {"loss": Curve(grid, descend(self.learning_rates))}

    def counterfeit(self) -> "LinearisationError":
        """The kernel is 10 % too large."""
        return dataclasses.replace(self, tangent=_too_large)


def _linearised_curves(solver, learning_rates, steps, tangent):
    kernel, start = solver.linearised(tangent)
    curve = jax.vmap(lambda rate: frozen_kernel_curve(kernel, start, learning_rate=rate, steps=jnp.arange(steps + 1)))
    return curve(learning_rates).loss


def _too_large(residual, parameters):
    return 1.1 * tangent_kernel(residual, parameters)

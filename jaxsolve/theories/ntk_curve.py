"""The tangent kernel of the start predicts the loss curve of a learned solver, for a while."""

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
from ..evidence import AbstractTheory, Curve, Kind, LocalRule

INSTANCE_SEED = 19


class NtkCurve(AbstractTheory):
    """`r_s = (I − η J_0 J_0ᵀ / n)^s r_0` gives the loss curve of descent while the parameters are near their start.

    The solver is a decoder of depth `L` with a non-stationary Flexformer as preconditioner, on tasks of kernel ridge
    regression; `r = z_L − z*` over all `n = N K` outputs, and the loss is `‖r‖² / (2 n)`. The prediction takes the
    Jacobian `J_0` with respect to all parameters once. The measurement is plain gradient descent.

    The grid are learning rates `η`, and the value at one of them is the whole curve, steps 0 to `S`: the relative
    error of the rule is `‖ℓ_predicted − ℓ‖ / ‖ℓ‖` over the steps. After 200 steps at 1.1e-3 the loss has fallen by 4 to
    6 %, and the error is about a quarter of the square of that share: a run is predicted because it is short. The drop
    of any curve is [`jaxsolve.curves.loss_drop`][]. Nor does the error tell which model was linearised: the kernel of
    another draw of projections and frequencies predicts as well, because the derivative by the skip `ρ` dominates.

    The counterfeit divides by a number of outputs that is 10 % too small.

    Attributes
    ----------
    solver
        Decoder, model at the start and tasks.
    tangent
        What computes `J_0 J_0ᵀ`, called like [`jaxsolve.curves.tangent_kernel`][].
    """

    solver: RegressionSolver
    learning_rates: Float[Array, " points"]
    steps: int = eqx.field(static=True)
    tangent: Callable = eqx.field(static=True, default=tangent_kernel)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.LOCAL
    rule: ClassVar[LocalRule] = LocalRule(level=2e-3, horizon=1.1e-3)
    source: ClassVar[str] = """@inproceedings{jacot2018neural,
  author = {Jacot, Arthur and Gabriel, Franck and Hongler, Cl{\\'e}ment},
  title = {Neural Tangent Kernel: Convergence and Generalization in Neural Networks},
  booktitle = {Advances in Neural Information Processing Systems},
  volume = {31},
  year = {2018},
}"""
    statement: ClassVar[str] = (
        "Over 200 steps of plain descent the loss curve under the frozen tangent kernel has a relative error of at "
        "most 2e-3 (norm over steps) for learning rates up to 1.1e-3, where the loss falls by a few per cent, and more "
        "beyond; loss: half the mean square over tasks and unknowns."
    )
    observables: ClassVar[tuple[str, ...]] = ("loss",)
    assumptions: ClassVar[tuple[str, ...]] = (
        "full-batch gradient descent without momentum",
        "the residual at initialisation is of order one",
    )
    breaks_when: ClassVar[str] = (
        "The loss falls by more than a few per cent: the Jacobian has moved with the parameters."
    )
    effect: ClassVar[float] = 1e-3

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        tasks: int = 8,
        size: int = 12,
        depth: int = 6,
        steps: int = 200,
        learning_rates: tuple[float, ...] = (1.1e-3, 1e-1),
        features: int = 8,
        head_size: int = 4,
        instance_seed: int = INSTANCE_SEED,
    ) -> "NtkCurve":
        """Eight tasks of 12 unknowns, one learning rate inside the horizon and one beyond."""
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
            learning_rates=jnp.asarray(learning_rates, dtype),
            steps=steps,
        )

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        tasks: int = 16,
        size: int = 12,
        learning_rates: tuple[float, ...] = (5e-4, 1e-3, 1.1e-3, 1e-2, 1e-1),
        features: int = 16,
        head_size: int = 12,
        **options,
    ) -> "NtkCurve":
        """16 tasks of 12 unknowns, two heads of size 8 with 16 frequencies: 803 parameters, 192 outputs."""
        sizes = {"tasks": tasks, "size": size, "features": features, "head_size": head_size}
        return cls.quick(dtype=dtype, learning_rates=learning_rates, **sizes, **options)

    def grid(self) -> Float[Array, " points"]:
        """The learning rates."""
        return self.learning_rates

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """The curve under the kernel of the start."""
        kernel, start = self.solver.linearised(self.tangent)
        steps = jnp.arange(self.steps + 1)
        predict = jax.vmap(lambda rate: frozen_kernel_curve(kernel, start, learning_rate=rate, steps=steps).loss)
        return {"loss": Curve(grid, predict(grid))}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Descent at each learning rate."""
        del key
        residual, parameters = self.solver.residual()
        descend = jax.vmap(lambda rate: descent_curve(residual, parameters, learning_rate=rate, steps=self.steps))
        return {"loss": Curve(grid, descend(grid))}

    def counterfeit(self) -> "NtkCurve":
        """The kernel is divided by `0.9 n`."""
        return dataclasses.replace(self, tangent=_too_large)


def _too_large(residual, parameters):
    return tangent_kernel(residual, parameters) / 0.9

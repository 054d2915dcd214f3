"""Tasks of kernel regression, and the learned solver for them whose training curves are studied."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Scalar
from ..preconditioners import Flexformer, position_tokens
from ._rollout_residual import RolloutResidual, rollout_residual


class KernelRegression(NamedTuple):
    """Linear systems `H_i z*_i = b_i`, from [`kernel_regression_tasks`][]."""

    operators: Float[Array, "tasks size size"]
    """`H`."""
    right_hand_sides: Float[Array, "tasks size"]
    """`b`."""
    solutions: Float[Array, "tasks size"]
    """`z*`."""


def kernel_regression_tasks(
    tasks: int,
    size: int,
    *,
    ridge: float = 0.3,
    shortest: float = 0.08,
    longest: float = 0.25,
    dtype: jax.typing.DTypeLike = float,
    generator: np.random.Generator,
) -> KernelRegression:
    """Kernel ridge regression of Gaussian processes with random length scales, one per task.

    Task `i` observes a process on the grid `x_a = a/(K − 1)` of [0, 1], `y_i ~ N(0, C_i)`, and solves for its dual
    coefficients,

        (G_i)_ab = exp(−(x_a − x_b)² / (2 ℓ_i²)),    C_i = G_i + ridge · I,
        z*_i = C_i^{−1} y_i,    H_i = C_i / Λ,    b_i = y_i / Λ,

    with `log ℓ_i` uniform between the logarithms of ``shortest`` and ``longest``. Both sides are divided by `Λ`, the
    largest eigenvalue over all tasks, so that the eigenvalues of `H` lie in (0, 1].

    Parameters
    ----------
    tasks, size
        `N` and `K`, at least 1 and 2.
    ridge
        Variance of the noise over that of the process, positive.
    shortest, longest
        Bounds of the length scales.
    dtype
        Of the arrays; the draws do not depend on it.
    generator
        For length scales and observations; the set-up runs in NumPy, outside of any transformation.

    Raises
    ------
    ValueError
        For numbers outside their ranges.

    >>> kernel_regression_tasks(3, 5, generator=np.random.default_rng(0)).operators.shape
    (3, 5, 5)
    """
    if tasks < 1 or size < 2:
        raise ValueError(f"There is at least one task, of size 2 or more; got tasks={tasks}, size={size}.")
    if not (ridge > 0 and 0 < shortest <= longest):
        raise ValueError(
            f"ridge is positive and 0 < shortest <= longest; got ridge={ridge}, shortest={shortest}, longest={longest}."
        )
    uniform, noise = generator.random(tasks), generator.standard_normal((tasks, size))
    length_scales = shortest * (longest / shortest) ** uniform
    positions = np.linspace(0, 1, size)
    distances = (positions[:, None] - positions[None, :]) / length_scales[:, None, None]
    covariances = np.exp(-(distances**2) / 2) + ridge * np.eye(size)
    observations = np.einsum("tij,tj->ti", np.linalg.cholesky(covariances), noise)
    solutions = np.linalg.solve(covariances, observations[:, :, None])[:, :, 0]
    largest = np.linalg.eigvalsh(covariances).max()
    arrays = (covariances / largest, observations / largest, solutions)
    return KernelRegression(*(jnp.asarray(array, dtype) for array in arrays))


class RegressionSolver(eqx.Module):
    """A decoder with a Flexformer as preconditioner, and the tasks of kernel regression that it is trained on.

    Attributes
    ----------
    preconditioner
        The model at the start of training.
    tasks
        The systems; the decoder starts at zero.
    depth
        `L`, static.
    """

    preconditioner: Flexformer
    tasks: KernelRegression
    depth: int = eqx.field(static=True)

    @classmethod
    def draw(
        cls,
        tasks: int,
        size: int,
        *,
        depth: int,
        heads: int = 2,
        head_size: int = 8,
        features: int = 16,
        gain: float = 0.1,
        skip: float = 0.8,
        dtype: jax.typing.DTypeLike = float,
        generator: np.random.Generator,
    ) -> "RegressionSolver":
        """Tasks of [`kernel_regression_tasks`][] and a non-stationary Flexformer on the positions of the unknowns.

        Projections, frequencies and gains have the distribution of `Flexformer.initialise`, which describes the
        options; all draws are made in NumPy.

        Raises
        ------
        ValueError
            As [`kernel_regression_tasks`][] and [`jaxsolve.preconditioners.Flexformer`][] do.
        """
        systems = kernel_regression_tasks(tasks, size, dtype=dtype, generator=generator)
        tokens = position_tokens(size, dtype=dtype)
        projections = generator.standard_normal((2, heads, tokens.shape[1], head_size)) / tokens.shape[1] ** 0.5
        frequencies = generator.standard_normal((2, heads, features, head_size))
        arrays = (*projections, np.full(heads, gain / heads), skip, frequencies, np.zeros((heads, features)))
        model = Flexformer(tokens, *(jnp.asarray(array, dtype) for array in arrays))
        return cls(model, systems, depth)

    def residual(self, scale: Scalar | float = 1.0) -> tuple[RolloutResidual, Flexformer]:
        """The residual as a function of the parameters, and the parameters; see [`rollout_residual`][]."""
        operators, right_hand_sides, solutions = self.tasks
        arguments = (self.preconditioner, operators, right_hand_sides, jnp.zeros_like(solutions), solutions)
        return rollout_residual(*arguments, depth=self.depth, scale=scale)

    @eqx.filter_jit
    def linearised(
        self, tangent: Callable[[RolloutResidual, Flexformer], Array]
    ) -> tuple[Float[Array, "outputs outputs"], Float[Array, " outputs"]]:
        """A kernel of the residual at the start, such as [`tangent_kernel`][], and the residual there."""
        residual, parameters = self.residual()
        return tangent(residual, parameters), residual(parameters)

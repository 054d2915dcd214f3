"""Diffusion on a line with four unknown coefficients, each estimated from a short noisy prompt."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..pde import ParametricDiffusion, cosine_modes, interval_grid
from ..solver import WeakFormEncoder, project_to_box


class PromptedDiffusion(NamedTuple):
    """Systems and what an encoder makes of their prompts, in NumPy; from [`prompted_diffusion`][]."""

    operators: Float[np.ndarray, "tasks size size"]
    """`A(z)`, the truth."""
    estimates: Float[np.ndarray, "tasks size size"]
    """`A(ẑ)`, from the prompt."""
    solutions: Float[np.ndarray, "tasks size"]
    """`x* = A⁻¹ b` for a standard normal `b`, scaled so that the mean square of a task is 1 on average over `b`."""
    reference: Float[np.ndarray, "size size"]
    """`A_0`, the operator of the mean coefficients."""
    projected: int
    """Tasks whose estimate was moved back into the box of admissible coefficients."""


def prompted_diffusion(
    tasks: int,
    *,
    size: int = 16,
    prompt_size: int = 8,
    noise: float = 0.2,
    amplitude: float = 0.2,
    generator: np.random.Generator,
) -> PromptedDiffusion:
    """Operators `A(z) = A_0 + Σ_k z_k A_k` of `−(a u')' = f` on [0, 1], and their weak-form least-squares estimates.

    The coefficient is `a(x) = 1 + Σ_{k ≤ 4} z_k α cos(k π x)` with `z` uniform on `[−1, 1]⁴`, on linear elements with
    `size` inner nodes, `u = 0` at the ends, and one quadrature point per element. All matrices are divided by the
    largest eigenvalue of `A_0`. A prompt has pairs `(u_j, f_j)` with `f_j = A(z) u_j + noise`, standard normal loads
    before the noise. With `D_j = [A_1 u_j, …, A_4 u_j]` the estimate minimises
    `Σ_j ‖D_j z − (f_j − A_0 u_j)‖²` in the norm of `A_0⁻¹`: the [`jaxsolve.solver.WeakFormEncoder`][]. An estimate
    outside of the box is clipped to it, so that every `A(ẑ)` is positive definite; how many were is told.

    Parameters
    ----------
    tasks, size, prompt_size
        `N`, `K` and `m`.
    noise
        Standard deviation of what is added to an entry of a load, whose own is 1.
    amplitude
        `α`; below 1/4 every admissible coefficient is positive.
    generator
        For coefficients, prompts and right-hand sides.

    Raises
    ------
    ValueError
        For fewer than one task or pair, fewer than five nodes, a negative noise, and an amplitude outside of (0, 1/4).

    >>> found = prompted_diffusion(3, noise=0.0, generator=np.random.default_rng(0))
    >>> found.operators.shape, bool(abs(found.estimates - found.operators).max() < 1e-12)
    ((3, 16, 16), True)
    """
    if tasks < 1 or prompt_size < 1 or size < 5 or not noise >= 0 or not 0 < amplitude < 0.25:
        raise ValueError(
            "prompted_diffusion takes at least one task and pair, five nodes or more, a noise of at least 0 and an "
            f"amplitude in (0, 1/4); got tasks={tasks}, prompt_size={prompt_size}, size={size}, noise={noise}, "
            f"amplitude={amplitude}."
        )
    grid = interval_grid(size)
    family = ParametricDiffusion(grid, cosine_modes(grid, amplitude=amplitude))
    encoder = WeakFormEncoder.from_family(family, weights="mean_inverse")
    reference = np.asarray(family.mean_operator)
    scale = np.linalg.eigvalsh(reference)[-1]
    coefficients = generator.uniform(-1, 1, (tasks, len(family.modes)))
    operators = np.asarray(family.operators(jnp.asarray(coefficients, grid.points.dtype)))
    loads = generator.standard_normal((tasks, prompt_size, size))
    responses = np.linalg.solve(operators[:, None], loads[..., None])[..., 0]
    loads = loads + noise * generator.standard_normal(loads.shape)
    pairs = (jnp.asarray(array, grid.points.dtype) for array in (responses, loads))
    estimated, projected = project_to_box(encoder.estimate(*pairs).coefficients)
    inverses = np.linalg.inv(operators)
    sizes = np.sqrt(size / (inverses**2).sum(axis=(1, 2)))
    solutions = sizes[:, None] * np.einsum("tij,tj->ti", inverses, generator.standard_normal((tasks, size)))
    estimates = np.asarray(family.operators(estimated))
    return PromptedDiffusion(operators / scale, estimates / scale, solutions, reference / scale, int(projected))

"""Diffusion with a few unknown parameters, each estimated from a short noisy prompt."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..pde import ParametricDiffusion, cosine_modes, ellipticity_certificate, interval_grid
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
    family: ParametricDiffusion | None = None,
    size: int = 16,
    prompt_size: int = 8,
    noise: float = 0.2,
    amplitude: float = 0.2,
    generator: np.random.Generator,
) -> PromptedDiffusion:
    """Operators `A(z)` of a diffusion equation, and those that the weak-form encoder reads off their prompts.

    The parameters `z` are uniform on `[−1, 1]^k`. All matrices are divided by the largest eigenvalue of `A_0`. A prompt
    has pairs `(u_j, f_j)` with `f_j = A(z) u_j + noise`, standard normal loads before the noise. The estimate is that
    of the [`jaxsolve.solver.WeakFormEncoder`][] with the weights `A_0⁻¹`; outside of the box it is clipped to it, so
    that every `A(ẑ)` lies where [`jaxsolve.pde.ellipticity_certificate`][] holds. How many were is told.

    Parameters
    ----------
    tasks, prompt_size
        `N` and `m`.
    family
        Any link, on any discretisation. By default `a(x) = 1 + Σ_{k ≤ 4} z_k α cos(k π x)` on linear elements of
        [0, 1], with one quadrature point per element.
    size, amplitude
        Inner nodes and `α` of the default family; below 1/4 every admissible coefficient is positive.
    noise
        Standard deviation of what is added to an entry of a load, whose own is 1.
    generator
        For parameters, prompts and right-hand sides.

    Raises
    ------
    ValueError
        For fewer than one task or pair, fewer than five nodes, a negative noise, and an amplitude outside of (0, 1/4);
        for a family with a coefficient in the box that is not positive, and where the encoder fails.

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
    if family is None:
        grid = interval_grid(size)
        family = ParametricDiffusion(grid, cosine_modes(grid, amplitude=amplitude))
    ellipticity_certificate(family)
    dtype = family.modes.dtype
    encoder = WeakFormEncoder.from_family(family, weights="mean_inverse")
    reference = np.asarray(family.mean_operator)
    size, scale = len(reference), np.linalg.eigvalsh(reference)[-1]
    coefficients = generator.uniform(-1, 1, (tasks, len(family.modes)))
    operators = np.asarray(family.operators(jnp.asarray(coefficients, dtype)))
    loads = generator.standard_normal((tasks, prompt_size, size))
    responses = np.linalg.solve(operators[:, None], loads[..., None])[..., 0]
    loads = loads + noise * generator.standard_normal(loads.shape)
    pairs = (jnp.asarray(array, dtype) for array in (responses, loads))
    estimated, projected = project_to_box(encoder.estimate(*pairs).coefficients)
    inverses = np.linalg.inv(operators)
    sizes = np.sqrt(size / (inverses**2).sum(axis=(1, 2)))
    solutions = sizes[:, None] * np.einsum("tij,tj->ti", inverses, generator.standard_normal((tasks, size)))
    estimates = np.asarray(family.operators(estimated))
    return PromptedDiffusion(operators / scale, estimates / scale, solutions, reference / scale, int(projected))

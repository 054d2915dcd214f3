"""The squared error of recovered coefficients falls like one over the length of the prompt."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, Curve, Kind, LimitRule
from ..pde import ParametricDiffusion, cosine_modes, interval_grid
from ..solver import WeakFormEncoder, draw_prompts

INSTANCE_SEED = 64


class PromptAveraging(AbstractTheory):
    """`E ‖ẑ − z‖² / 4 ∝ s² / m` for `m` pairs whose loads carry noise of size `s`.

    The grid is `m / s²`, reached by prompts of different lengths and noise: both change from point to point, and one
    slope of −1 over the grid is two laws at once. The error tends to zero, because noise on the loads alone leaves no
    bias. Short prompts lie slightly above the line, as the inverse of a random matrix does above that of its mean.

    The equation is `−(a u')' = f` on the unit interval, `a = 1 + Σ_k 0.2 z_k cos(kπx)`, with `z` uniform in the box.
    Tasks are a field; prompts and noise are drawn.

    The counterfeit leaves a floor: nine tenths of the error at the last point.

    Attributes
    ----------
    noise
        `s`, one number for each length.
    share
        The floor, as a share of the error that the mean normal equations give at the last point.
    """

    family: ParametricDiffusion
    parameters: Float[Array, "tasks parameters"]
    noise: Float[Array, " points"]
    share: Float[Array, ""]
    pairs: tuple[int, ...] = eqx.field(static=True)
    replicates: int = eqx.field(static=True, default=32)

    kind: ClassVar[Kind] = Kind.LIMIT
    rule: ClassVar[LimitRule] = LimitRule(exponent=-1.0, band=0.05)
    source: ClassVar[str] = """@book{bjorck1996numerical,
  author = {Bj{\\"o}rck, {\\AA}ke},
  title = {Numerical Methods for Least Squares Problems},
  publisher = {SIAM},
  year = {1996},
}"""
    statement: ClassVar[str] = (
        "The mean squared error of coefficients that weak-form least squares reads off m pairs is proportional to the "
        "variance of the noise of the loads divided by m, and has no floor."
    )
    observables: ClassVar[tuple[str, ...]] = ("coefficient_error",)
    assumptions: ClassVar[tuple[str, ...]] = ("white noise on the loads and none on the states", "eight pairs or more")
    breaks_when: ClassVar[str] = "The states are noisy: their noise is in the regressors and leaves a bias."
    effect: ClassVar[float] = 0.05

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 31,
        tasks: int = 16,
        pairs: tuple[int, ...] = (8, 16, 32, 64),
        noise: tuple[float, ...] = (4e-3, 4e-3, 2e-3, 2e-3),
        instance_seed: int = INSTANCE_SEED,
        replicates: int = 32,
    ) -> "PromptAveraging":
        """16 tasks with 31 unknowns, prompts of 8 to 64 pairs, two sizes of noise, 32 draws."""
        random = np.random.default_rng(instance_seed)
        grid = interval_grid(size, dtype=dtype)
        return cls(
            family=ParametricDiffusion(grid, cosine_modes(grid)),
            parameters=jnp.asarray(random.uniform(-1, 1, (tasks, 4)), dtype),
            noise=jnp.asarray(noise, dtype),
            share=jnp.zeros((), dtype),
            pairs=pairs,
            replicates=replicates,
        )

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        tasks: int = 32,
        pairs: tuple[int, ...] = (8, 16, 32, 64, 128),
        noise: tuple[float, ...] = (4e-3, 4e-3, 2e-3, 2e-3, 1e-3),
        **options,
    ) -> "PromptAveraging":
        """32 tasks, prompts of 8 to 128 pairs and three sizes of noise; else as ``quick``."""
        return cls.quick(dtype=dtype, tasks=tasks, pairs=pairs, noise=noise, **options)

    def grid(self) -> Float[Array, " points"]:
        """`m / s²`."""
        return jnp.asarray(self.pairs, self.dtype) / self.noise**2

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """No error is left, or in the counterfeit a floor of the size of the last point's."""
        operators = self.family.operators(self.parameters, throw=False)
        moved = jnp.linalg.solve(operators[:, None], self.family.mode_operators[None])
        normal = jnp.einsum("tkij,tlij->tkl", moved, moved, precision="highest")
        last = jnp.trace(jnp.linalg.inv(normal), axis1=1, axis2=2).mean() / (len(self.family.modes) * grid[-1])
        return {"coefficient_error": Curve(grid, jnp.broadcast_to(self.share * last, grid.shape))}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """New prompts at every point, and the mean squared error of what the encoder reads off them.

        All are drawn at the largest length. Pairs set to zero add nothing to the normal equations.
        """
        operators = self.family.operators(self.parameters, throw=False)
        encoder = WeakFormEncoder.from_family(self.family)
        longest = max(self.pairs)

        def error(point):
            number, pairs, noise = point
            prompts = draw_prompts(operators, pairs=longest, load_noise=noise, key=jax.random.fold_in(key, number))
            counted = (jnp.arange(longest) < pairs)[None, :, None]
            states, loads = (jnp.where(counted, values, 0) for values in prompts)
            found = encoder.estimate(states, loads, throw=False).coefficients
            return jnp.mean((found - self.parameters) ** 2)

        points = jnp.arange(len(self.pairs)), jnp.asarray(self.pairs), self.noise
        return {"coefficient_error": Curve(grid, jax.lax.map(error, points))}

    def counterfeit(self) -> "PromptAveraging":
        """A floor of nine tenths of the last error."""
        return dataclasses.replace(self, share=jnp.full((), 0.9, self.dtype))

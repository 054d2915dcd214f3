"""The risk from prompt to solution of a parametric equation: unfinished iteration plus what the encoder missed."""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..certificates import depth_risk
from ..evidence import AbstractTheory, Curve, Kind, PopulationRule
from ..pde import ParametricDiffusion, cosine_modes, ellipticity_certificate, interval_grid
from ..solver import WeakFormEncoder, project_to_box, trajectory

INSTANCE_SEED = 62

_product = partial(jnp.einsum, precision="highest")


def _encoder_floor(operators, tangents, states, load_noise):
    """`s² tr(A^{-1} A_k A_lᵀ A^{-ᵀ}) (Σ_j D_jᵀ D_j)^{-1}_kl / n`: one number per task."""
    designs = _product("tkij,tpj->tpik", tangents, states)
    covariance = load_noise**2 * jnp.linalg.inv(_product("tpik,tpil->tkl", designs, designs))
    moved = jnp.linalg.solve(operators[:, None], tangents)
    return _product("tkl,tkij,tlij->t", covariance, moved, moved) / operators.shape[1]


def _nothing(operators, tangents, states, load_noise):
    del tangents, states, load_noise
    return jnp.zeros(operators.shape[:1], operators.dtype)


class ParametricRisk(AbstractTheory):
    """`R(l) = E ‖x̂_l − x*‖² / n` of a diffusion equation whose four parameters are read off a prompt.

    With `M = I − τ A_0^{-1} A(z)` and small noise of the loads,

        R(l) = mean_z [ ‖M^l‖_F² / n + s² Σ_kl C_kl tr(A^{-1} A_k A_l A^{-1}) / n ],    C = (Σ_j D_jᵀ D_j)^{-1},

    where `A_k = ∂A(z)/∂z_k` and `D_j` has the columns `A_k u_j`: the risk of the decoder with the true operator and the
    floor of the encoder. The terms left out are smaller than these by `‖M‖^l` or by the relative error of the estimated
    operator. Solutions `x* ~ N(0, I)` make the risk relative to `E ‖x*‖² / n = 1`; there is no factor 1/2.

    The equation is `−(a u')' = f` on the unit interval with `a = 1 + Σ_k 0.2 z_k cos(kπx)`, `z` uniform in the box,
    unless ``quick`` is given a family of another link or on another mesh. Tasks and the clean states of their prompts
    are fields: the noise of the loads and the solutions are drawn. The sample estimates `z` by the weak-form encoder
    with unit weights, projects it to the box, and runs the iteration with `P = τ A_0^{-1}` on the estimated operator;
    the step `τ` is that of the certificate of the family, 1 for an affine coefficient. A few tasks near corners of the
    box carry most of the risk: another draw of tasks has another risk.

    The counterfeit has an encoder without error.

    Attributes
    ----------
    states
        Clean `u_j` of the prompts.
    load_noise
        `s`, relative to loads `f_j ~ N(0, I)`.
    floor
        What gives the second term.
    """

    family: ParametricDiffusion
    parameters: Float[Array, "tasks parameters"]
    states: Float[Array, "tasks pairs size"]
    load_noise: Float[Array, ""]
    depth: int = eqx.field(static=True)
    floor: Callable = eqx.field(static=True, default=_encoder_floor)
    replicates: int = eqx.field(static=True, default=100)

    kind: ClassVar[Kind] = Kind.POPULATION
    rule: ClassVar[PopulationRule] = PopulationRule()
    source: ClassVar[str] = """@article{cohen2015approximation,
  author = {Cohen, Albert and DeVore, Ronald},
  title = {Approximation of High-Dimensional Parametric {PDEs}},
  journal = {Acta Numerica},
  volume = {24},
  pages = {1--159},
  year = {2015},
}"""
    statement: ClassVar[str] = (
        "For solutions with identity covariance, the mean square error per unknown from prompt to solution after l "
        "steps, without 1/2, is the mean over tasks of the squared Frobenius norm of the l-th power of the iteration "
        "matrix divided by the size, plus the first-order effect of the encoder's covariance."
    )
    observables: ClassVar[tuple[str, ...]] = ("risk",)
    assumptions: ClassVar[tuple[str, ...]] = (
        "noise of the loads small against the loads, none of the states",
        "solutions have mean zero and identity covariance and are independent of the prompts",
    )
    breaks_when: ClassVar[str] = (
        "The noise is so large that estimates leave the box or the operator changes by its own size."
    )
    effect: ClassVar[float] = 0.05

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        family: ParametricDiffusion | None = None,
        size: int = 31,
        tasks: int = 48,
        pairs: int = 8,
        load_noise: float = 6.2e-4,
        depth: int = 16,
        instance_seed: int = INSTANCE_SEED,
        replicates: int = 100,
    ) -> "ParametricRisk":
        """48 tasks with 31 unknowns and 8 pairs, 100 draws of noise and solutions, depths to 16.

        A ``family`` has the dtype asked for, and takes the place of the interval with ``size`` unknowns.
        """
        random = np.random.default_rng(instance_seed)
        if family is None:
            grid = interval_grid(size, dtype=dtype)
            family = ParametricDiffusion(grid, cosine_modes(grid))
        parameters = jnp.asarray(random.uniform(-1, 1, (tasks, len(family.modes))), dtype)
        forces = random.standard_normal((tasks, len(family.discretisation.nodes), pairs))
        states = np.linalg.solve(np.asarray(family.operators(parameters), float), forces).swapaxes(1, 2)
        return cls(
            family=family,
            parameters=parameters,
            states=jnp.asarray(states, dtype),
            load_noise=jnp.asarray(load_noise, dtype),
            depth=depth,
            replicates=replicates,
        )

    @classmethod
    def full(
        cls, *, dtype: jax.typing.DTypeLike = float, tasks: int = 1000, replicates: int = 200, **options
    ) -> "ParametricRisk":
        """1000 tasks and 200 draws; else as ``quick``."""
        return cls.quick(dtype=dtype, tasks=tasks, replicates=replicates, **options)

    def grid(self) -> Float[Array, " points"]:
        """Depths 0 to ``depth``."""
        return jnp.arange(self.depth + 1, dtype=self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """Powers of `M`, and the floor."""
        operators = self.family.operators(self.parameters, throw=False)
        size = operators.shape[1]
        identity = jnp.broadcast_to(jnp.eye(size, dtype=self.dtype), operators.shape)
        step = ellipticity_certificate(self.family, throw=False).step
        matrices = identity - step * jnp.linalg.solve(self.family.mean_operator[None], operators)
        _, powers = jax.lax.scan(
            lambda power, _: (_product("tij,tjk->tik", power, matrices), power), identity, length=len(grid)
        )
        decoder = jnp.mean(jnp.sum(powers**2, axis=(2, 3)), axis=1) / size
        tangents = self.family.tangent_operators(self.parameters)
        floor = self.floor(operators, tangents, self.states, self.load_noise).mean()
        return {"risk": Curve(grid, decoder + jnp.where(grid > 0, floor, 0))}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Encoder, projection and iteration on the estimated operator."""
        operators = self.family.operators(self.parameters, throw=False)
        noise_key, solution_key = jax.random.split(key)
        noise = jax.random.normal(noise_key, (self.states.size,), self.dtype).reshape(self.states.shape)
        solutions = jax.random.normal(solution_key, operators.shape[:2], self.dtype)
        loads = _product("tij,tpj->tpi", operators, self.states) + self.load_noise * noise
        encoder = WeakFormEncoder.from_family(self.family)
        estimate, _ = project_to_box(encoder.estimate(self.states, loads, throw=False).coefficients)
        iterates = trajectory(
            ellipticity_certificate(self.family, throw=False).step * jnp.linalg.inv(self.family.mean_operator),
            self.family.operators(estimate, throw=False),
            _product("tij,tj->ti", operators, solutions),
            jnp.zeros_like(solutions),
            depth=self.depth,
        )
        risk = depth_risk(iterates, solutions)
        return {"risk": Curve(grid, risk.at[grid.astype(int)].get(mode="fill", fill_value=jnp.nan))}

    def counterfeit(self) -> "ParametricRisk":
        """An encoder without error."""
        return dataclasses.replace(self, floor=_nothing)

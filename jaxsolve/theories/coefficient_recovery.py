"""How exactly a prompt gives the coefficients of an equation, and with them its operator."""

import dataclasses
from functools import partial
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, Curve, Kind, LocalRule
from ..pde import ParametricDiffusion, cosine_modes, interval_grid
from ..solver import WeakFormEncoder, project_to_box

INSTANCE_SEED = 63

_product = partial(jnp.einsum, precision="highest")


def _mean_norm(variances: Float[Array, "tasks parameters"]) -> Float[Array, " tasks"]:
    """`E (Σ_k v_k g_k²)^{1/2}` for standard normal `g`, by trapezoids in `log t` of

    E X^{1/2} = (2 √π)^{-1} ∫_0^∞ (1 − E exp(−t X)) t^{−3/2} dt,    E exp(−t X) = Π_k (1 + 2 t v_k)^{−1/2}.
    """
    scale = variances.sum(axis=1, keepdims=True)
    logarithm = jnp.linspace(-40.0, 40.0, 401, dtype=variances.dtype)
    exponents = -jnp.log1p(2 * jnp.exp(logarithm)[None, :, None] * (variances / scale)[:, None, :]).sum(axis=2) / 2
    integrand = -jnp.expm1(exponents) * jnp.exp(-logarithm / 2)[None]
    return integrand.sum(axis=1) * 0.2 / (2 * np.pi**0.5) * scale[:, 0] ** 0.5


class CoefficientRecovery(AbstractTheory):
    """Errors of four parameters and of their operator, to first order in the noise `s` of the loads.

    With unit weights the weak-form least squares errs by `ẑ − z = C Σ_j D_jᵀ s ξ_j`, `C = (Σ_j D_jᵀ D_j)^{-1}`, where
    the columns of `D_j` are `A_k u_j` with `A_k = ∂A(z)/∂z_k`, so that

        coefficient_error = E ‖ẑ − z‖² / 4 = s² tr C / 4,
        operator_error    = E ‖A(ẑ) − A(z)‖_F / ‖A(z)‖_F,    with A(ẑ) − A(z) = Σ_k (ẑ_k − z_k) A_k ~ N(0, s² C),

    both averaged over tasks. The mean of a norm of four Gaussian numbers is a one-dimensional integral. The estimate
    is exact without noise; because it is brought back into the box `|z_k| ≤ 1`, the formula ends where errors are of
    the size of the box.

    The equation is `−(a u')' = f` on the unit interval, `a = 1 + Σ_k 0.2 z_k cos(kπx)`, with `z` uniform in the box
    and loads `f_j ~ N(0, I)` before the noise, unless ``quick`` is given a family of another link or on another mesh:
    for an affine coefficient the first order is exact, for another it is not. Tasks and clean states are fields; the
    noise is drawn.

    The counterfeit counts one pair of each prompt less.

    Attributes
    ----------
    states
        Clean `u_j`.
    noise
        Values of `s`: the grid.
    """

    family: ParametricDiffusion
    parameters: Float[Array, "tasks parameters"]
    states: Float[Array, "tasks pairs size"]
    noise: Float[Array, " points"]
    left_out: int = eqx.field(static=True, default=0)
    replicates: int = eqx.field(static=True, default=100)

    kind: ClassVar[Kind] = Kind.LOCAL
    rule: ClassVar[LocalRule] = LocalRule(level=0.05, horizon=1e-2)
    source: ClassVar[str] = """@book{bjorck1996numerical,
  author = {Bj{\\"o}rck, {\\AA}ke},
  title = {Numerical Methods for Least Squares Problems},
  publisher = {SIAM},
  year = {1996},
}"""
    statement: ClassVar[str] = (
        "The mean squared error of coefficients read off a prompt by least squares in the weak form, and the relative "
        "Frobenius error of the operator assembled from them, follow from the inverse of the normal equations as long "
        "as the errors are small against the box of admissible coefficients."
    )
    observables: ClassVar[tuple[str, ...]] = ("coefficient_error", "operator_error")
    assumptions: ClassVar[tuple[str, ...]] = (
        "white noise on the loads and none on the states",
        "an operator that is linear in its coefficient function, and that in few parameters, or smooth in them",
    )
    breaks_when: ClassVar[str] = "Errors reach the size of the box, or the states are noisy too."
    effect: ClassVar[float] = 0.05

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        family: ParametricDiffusion | None = None,
        size: int = 31,
        tasks: int = 64,
        pairs: int = 8,
        noise: tuple[float, ...] = (6.2e-4, 2e-3, 1e-2, 1.0, 3.0),
        instance_seed: int = INSTANCE_SEED,
        replicates: int = 100,
    ) -> "CoefficientRecovery":
        """64 tasks with 31 unknowns and 8 pairs, 100 draws of the noise.

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
            noise=jnp.asarray(noise, dtype),
            replicates=replicates,
        )

    @classmethod
    def full(
        cls, *, dtype: jax.typing.DTypeLike = float, tasks: int = 300, replicates: int = 200, **options
    ) -> "CoefficientRecovery":
        """300 tasks and 200 draws; else as ``quick``."""
        return cls.quick(dtype=dtype, tasks=tasks, replicates=replicates, **options)

    def grid(self) -> Float[Array, " points"]:
        """The noise of the loads."""
        return self.noise

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """First-order propagation of the noise."""
        tangents = self.family.tangent_operators(self.parameters)
        designs = _product("tkij,tpj->tpik", tangents, self.states[:, self.left_out :])
        covariance = jnp.linalg.inv(_product("tpik,tpil->tkl", designs, designs))
        squared = jnp.trace(covariance, axis1=1, axis2=2).mean() / tangents.shape[1]
        root = jnp.linalg.cholesky(_product("tkij,tlij->tkl", tangents, tangents))
        variances = jnp.linalg.eigvalsh(_product("tki,tkl,tlj->tij", root, covariance, root))
        sizes = jnp.linalg.norm(self.family.operators(self.parameters, throw=False), axis=(1, 2))
        relative = (_mean_norm(variances) / sizes).mean()
        return {"coefficient_error": Curve(grid, grid**2 * squared), "operator_error": Curve(grid, grid * relative)}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """The encoder on noisy loads, projected to the box; one draw of the noise, scaled to each size."""
        operators = self.family.operators(self.parameters, throw=False)
        clean = _product("tij,tpj->tpi", operators, self.states)
        encoder = WeakFormEncoder.from_family(self.family)

        noise = jax.random.normal(key, (self.states.size,), self.dtype).reshape(self.states.shape)

        def errors(strength):
            found = encoder.estimate(self.states, clean + strength * noise, throw=False).coefficients
            estimate, _ = project_to_box(found)
            change = self.family.operators(estimate, throw=False) - operators
            relative = jnp.linalg.norm(change, axis=(1, 2)) / jnp.linalg.norm(operators, axis=(1, 2))
            return jnp.mean((estimate - self.parameters) ** 2), relative.mean()

        squared, relative = jax.lax.map(errors, grid)
        return {"coefficient_error": Curve(grid, squared), "operator_error": Curve(grid, relative)}

    def counterfeit(self) -> "CoefficientRecovery":
        """The first pair of each prompt is not counted."""
        return dataclasses.replace(self, left_out=1)

"""A linear read-out of a weak-form encoder, trained on prompts with noisy states, follows the moments of its tokens."""

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
from ..evidence import AbstractTheory, Curve, Kind, PopulationRule
from ..pde import ParametricDiffusion, cosine_modes, interval_grid
from ..solver import WeakFormEncoder

INSTANCE_SEED = 71

_product = partial(jnp.einsum, precision="highest")


def _noisy_states(inverse, mean, state_noise, load_noise):
    """`E u uᵀ`, `E y yᵀ` and `E y uᵀ` of a pair, with `y = f − A_0 u` in terms of force and noise."""
    size = len(mean)
    identity = jnp.eye(size, dtype=mean.dtype)
    unexplained = identity - mean @ inverse
    states = inverse @ inverse.T + state_noise**2 * identity
    targets = unexplained @ unexplained.T + state_noise**2 * mean @ mean.T + load_noise**2 * identity
    return states, targets, unexplained @ inverse.T - state_noise**2 * mean


def _clean_regressors(inverse, mean, state_noise, load_noise):
    states, targets, mixed = _noisy_states(inverse, mean, state_noise, load_noise)
    noise = state_noise**2 * jnp.eye(len(mean), dtype=mean.dtype)
    return states - noise, targets, mixed + state_noise**2 * mean


class TrainedReadout(AbstractTheory):
    """Descent on a linear read-out `ẑ = Γ c` of what the head of a weak-form encoder pools from `m` noisy pairs.

    The statistic `c_k = (1/m) Σ_j u_jᵀ A_k W y_j`, `y_j = f_j − A_0 u_j`, is a mean of quadratic forms in the Gaussian
    force `g_j`, noise of states `ζ_j` and noise of loads `ξ_j`, because `u_j = A^{-1} g_j + s_u ζ_j` and
    `f_j = g_j + s_f ξ_j`. With `M_k = A_k W` its moments for a task are, at any size of the noise,

        E c_k = tr(M_k E y uᵀ),
        m cov(c_k, c_l) = tr(E[y uᵀ] M_k E[y uᵀ] M_l) + tr(E[u uᵀ] M_k E[y yᵀ] M_lᵀ).

    Averaged over tasks they are `S = E c cᵀ` and `B = E z cᵀ`. Descent on `E ‖Γ c − z‖² / (2K)` with the rate `η` gives

        Γ_s − Γ* = (Γ_0 − Γ*) (I − η S/K)^s,    Γ* = B S^{-1},
        R(s) = E ‖Γ_s c − z‖² / K = R* + Σ_i d_i (1 − η λ_i / K)^{2s},    d_i = λ_i ‖(Γ_0 − Γ*) v_i‖² / K,

    in the eigenvectors `S v_i = λ_i v_i`. The optimum `Γ*` is the ridge that the noise of prompts asks for.

    The experiment trains online: each step takes the gradient on fresh prompts of all tasks. Its mean weights are those
    of the law, exactly and at every learning rate, since a batch is independent of the weights that it changes. Two
    runs with independent prompts go side by side; on a third prompt the product of their errors,
    `⟨Γ_s c − z, Γ_s' c − z⟩ / K`, has the mean `R(s)`, without the excess that the scatter of one run adds.

    The equation is `−(a u')' = f` on the unit interval with `a = 1 + Σ_k 0.2 z_k cos(kπx)`, the weights are
    `W = A_0^{-1}`, and `Γ_0 = 0`.

    The counterfeit has the noise of the states in the equation but not in the regressors `A_k u_j`.

    Attributes
    ----------
    inverses
        `A(z)^{-1}` of the tasks.
    learning_rate
        `η`.
    at
        Steps at which the read-out is tried.
    second_moments
        What gives the moments of one pair.
    """

    encoder: WeakFormEncoder
    parameters: Float[Array, "tasks parameters"]
    inverses: Float[Array, "tasks size size"]
    state_noise: Float[Array, ""]
    load_noise: Float[Array, ""]
    learning_rate: Float[Array, ""]
    pairs: int = eqx.field(static=True)
    at: tuple[int, ...] = eqx.field(static=True)
    second_moments: Callable = eqx.field(static=True, default=_noisy_states)
    replicates: int = eqx.field(static=True, default=200)

    kind: ClassVar[Kind] = Kind.POPULATION
    rule: ClassVar[PopulationRule] = PopulationRule()
    source: ClassVar[str] = """@book{fuller1987measurement,
  author = {Fuller, Wayne A.},
  title = {Measurement Error Models},
  publisher = {Wiley},
  year = {1987},
}"""
    statement: ClassVar[str] = (
        "A linear read-out of the pooled tokens of a weak-form encoder, trained online by gradient descent on half the "
        "mean square error per parameter, has mean weights that approach the ridge given by the Gaussian moments of "
        "noisy prompts at the rates of their spectrum; the mean square error per parameter at the mean weights, "
        "without 1/2, is its optimum plus a sum of (1 - eta lambda/K)^(2s)."
    )
    observables: ClassVar[tuple[str, ...]] = ("weights", "risk")
    assumptions: ClassVar[tuple[str, ...]] = (
        "Gaussian forces and noise, independent from pair to pair and from step to step",
        "every step sees each task once",
    )
    breaks_when: ClassVar[str] = (
        "The system G z = c of each prompt is solved: the answer is no longer linear in what is trained."
    )
    effect: ClassVar[float] = 0.05

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 12,
        tasks: int = 16,
        pairs: int = 8,
        state_noise: float = 0.03,
        load_noise: float = 0.05,
        at: tuple[int, ...] = (0, 1, 2, 4, 8, 16, 32),
        share: float = 1.0,
        instance_seed: int = INSTANCE_SEED,
        replicates: int = 200,
    ) -> "TrainedReadout":
        """16 tasks with 12 unknowns and 8 pairs, 32 steps with `η λ_max / K = share`, 200 pairs of runs."""
        grid = interval_grid(size, dtype=dtype)
        family = ParametricDiffusion(grid, cosine_modes(grid))
        drawn = np.random.default_rng(instance_seed).uniform(-1, 1, (tasks, 4))
        parameters = jnp.asarray(drawn, dtype)
        theory = cls(
            encoder=WeakFormEncoder.from_family(family, weights="mean_inverse"),
            parameters=parameters,
            inverses=jnp.linalg.inv(family.operators(parameters)),
            state_noise=jnp.asarray(state_noise, dtype),
            load_noise=jnp.asarray(load_noise, dtype),
            learning_rate=jnp.ones((), dtype),
            pairs=pairs,
            at=at,
            replicates=replicates,
        )
        largest = jnp.linalg.eigvalsh(theory.moments()[0])[-1]
        return dataclasses.replace(theory, learning_rate=share * drawn.shape[1] / largest)

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 31,
        tasks: int = 32,
        at: tuple[int, ...] = (0, 1, 2, 4, 8, 16, 32, 64, 128),
        **options,
    ) -> "TrainedReadout":
        """32 tasks with 31 unknowns, 128 steps; else as ``quick``."""
        return cls.quick(dtype=dtype, size=size, tasks=tasks, at=at, **options)

    def grid(self) -> Float[Array, " points"]:
        """Steps at which the read-out is tried."""
        return jnp.asarray(self.at, self.dtype)

    def moments(self) -> tuple[Float[Array, "parameters parameters"], Float[Array, "parameters parameters"]]:
        """`S = E c cᵀ` and `B = E z cᵀ`, over tasks and prompts."""
        family = self.encoder.family
        mean = family.mean_operator
        weights = _product("ni,nj->ij", self.encoder.weight_root, self.encoder.weight_root)
        modes = _product("kij,jl->kil", family.mode_operators, weights)

        def of_task(inverse):
            states, targets, mixed = self.second_moments(inverse, mean, self.state_noise, self.load_noise)
            first = _product("kij,ji->k", modes, mixed)
            crossed = _product("ij,kjl,lm,nmi->kn", mixed, modes, mixed, modes)
            straight = _product("ij,kjl,lm,nim->kn", states, modes, targets, modes)
            return first, (crossed + straight) / self.pairs + first[:, None] * first[None]

        first, second = jax.vmap(of_task)(self.inverses)
        return second.mean(axis=0), _product("tk,tl->kl", self.parameters, first) / len(first)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """Powers in the eigenvectors of `S`."""
        second, mixed = self.moments()
        count = len(second)
        eigenvalues, vectors = jnp.linalg.eigh(second)
        optimum = _product("ki,ij->kj", mixed, vectors) / eigenvalues[None]
        left = (1 - self.learning_rate * eigenvalues / count)[None] ** grid[:, None]
        weights = _product("ki,si,ji->skj", optimum, 1 - left, vectors)
        least = jnp.mean(self.parameters**2) - jnp.sum(optimum**2 * eigenvalues[None]) / count
        excess = _product("ki,i,si->s", optimum**2, eigenvalues, left**2) / count
        return {"weights": Curve(grid, weights.reshape(len(grid), -1)), "risk": Curve(grid, least + excess)}

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Two online runs, tried on a third prompt of every task."""

        def statistics(key):
            shape = 3, len(self.parameters), self.pairs, self.inverses.shape[1]
            forces, states, loads = jax.random.normal(key, (int(np.prod(shape)),), self.dtype).reshape(shape)
            states = _product("tij,tpj->tpi", self.inverses, forces) + self.state_noise * states
            return self.encoder.normal_equations(states, forces + self.load_noise * loads)[1]

        def errors(readout, pooled):
            return _product("kl,tl->tk", readout, pooled) - self.parameters

        def step(readouts, number):
            pooled = jax.vmap(statistics)(jax.random.split(jax.random.fold_in(key, number), 2))
            slope = jax.vmap(jax.grad(lambda readout, pooled: jnp.mean(errors(readout, pooled) ** 2) / 2))
            return readouts - self.learning_rate * slope(readouts, pooled), readouts

        count, last = self.parameters.shape[1], max(self.at)
        start = jnp.zeros((2, count, count), self.dtype)
        _, readouts = jax.lax.scan(step, start, jnp.arange(last + 1, dtype=jnp.uint32))
        tried = readouts.at[grid.astype(int)].get(mode="fill", fill_value=jnp.nan)
        pooled = statistics(jax.random.fold_in(key, last + 1))
        first, second = jax.vmap(jax.vmap(lambda readout: errors(readout, pooled)))(tried).swapaxes(0, 1)
        risk = jnp.mean(first * second, axis=(1, 2))
        return {"weights": Curve(grid, tried.mean(axis=1).reshape(len(grid), -1)), "risk": Curve(grid, risk)}

    def counterfeit(self) -> "TrainedReadout":
        """The noise of the states is in the equation and not in the regressors."""
        return dataclasses.replace(self, second_moments=_clean_regressors)

"""How much training can improve the weights of a weak-form encoder: the Gauss-Markov bound and that of Kantorovich."""

import dataclasses
from functools import partial
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from .._types import Key
from ..evidence import AbstractTheory, BoundRule, Curve, Kind
from ..pde import ParametricDiffusion, cosine_modes, interval_grid
from ..solver import WeakFormEncoder, train_encoder

INSTANCE_SEED = 72

_product = partial(jnp.einsum, precision="highest")


class TrainedEncoder(AbstractTheory):
    """`V(W) ≥ V* = tr (Σ_j D_jᵀ Ω^{-1} D_j)^{-1} / K` for every prompt, however the weights `W` were found.

    Noise `s ζ_j` of the states enters the equation as `−s A(z) ζ_j`. To first order in `s` the variance per parameter
    of what an encoder with the weights `W` reads off a prompt is `s² V(W)` with

        V(W) = tr[G^{-1} (Σ_j D_jᵀ W Ω W D_j) G^{-1}] / K,    G = Σ_j D_jᵀ W D_j,    Ω = A(z)².

    The least value over `W` is that of the weights `Ω^{-1}` (Gauss-Markov). They depend on the task; an encoder has one
    `W` for all. Those of the mean operator, `A_0^{-2}`, are nearly as good: with `α` and `β` the extreme eigenvalues of
    `A_0^{-1} Ω A_0^{-1}` (Kantorovich, in the matrix form of Marshall and Olkin)

        V(A_0^{-2}) ≤ (α + β)² / (4 α β) · V*.

    No training on noisy states gains more than this factor over `A_0^{-2}`. Two observables have the precision
    `1/V(W_s)`, at most `1/V*`, along training from `A_0^{-1}` and from `A_0^{-2}`; the other two have the gain
    `V(A_0^{-2})/V(W_s)`, at most the factor of the task. Building a configuration trains by Adam through the rollout of
    the encoder. `V(W_s)` is measured as the squared Frobenius norm of the Jacobian of its estimate by the states, in
    automatic differentiation.

    The equation is `−(a u')' = f` on the unit interval with `a = 1 + Σ_k 0.2 z_k cos(kπx)`, on held-out tasks.

    The counterfeit takes the noise of the mean operator, `Ω = A_0²`, in `V*`.

    Attributes
    ----------
    weight_roots
        `R_s` with `W_s = R_sᵀ R_s`: one row of them for each start.
    parameters, states
        `z` and clean `u_j` of the held-out tasks.
    steps
        `s`, the grid.
    """

    family: ParametricDiffusion
    weight_roots: Float[Array, "starts points size size"]
    parameters: Float[Array, "tasks parameters"]
    states: Float[Array, "tasks pairs size"]
    steps: tuple[int, ...] = eqx.field(static=True)
    of_mean: bool = eqx.field(static=True, default=False)
    replicates: int = eqx.field(static=True, default=1)

    kind: ClassVar[Kind] = Kind.BOUND
    rule: ClassVar[BoundRule] = BoundRule(relative=1e-3)
    source: ClassVar[str] = """@article{marshall1990matrix,
  author = {Marshall, Albert W. and Olkin, Ingram},
  title = {Matrix Versions of the {Cauchy} and {Kantorovich} Inequalities},
  journal = {Aequationes Mathematicae},
  volume = {40},
  pages = {89--93},
  year = {1990},
}"""
    statement: ClassVar[str] = (
        "For small noise of the states no weights of a weak-form encoder, trained or not, give a smaller variance of "
        "the parameters of a prompt than the inverse covariance of the noise in the equation; and none is better than "
        "the inverse square of the mean operator by more than Kantorovich's factor of the task."
    )
    observables: ClassVar[tuple[str, ...]] = (
        "precision_from_mean_inverse",
        "precision_from_mean_inverse_square",
        "gain_from_mean_inverse",
        "gain_from_mean_inverse_square",
    )
    assumptions: ClassVar[tuple[str, ...]] = (
        "white noise on the states and none on the loads, to first order",
        "the normal equations of a prompt are solved exactly",
    )
    breaks_when: ClassVar[str] = "Noise is large enough for its second order: a biased estimate can have less error."
    effect: ClassVar[float] = 1e-2

    @classmethod
    def quick(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        size: int = 15,
        tasks: int = 16,
        held_out: int = 32,
        pairs: int = 8,
        state_noise: float = 1e-3,
        depth: int = 40,
        interval: int = 20,
        intervals: int = 3,
        learning_rate: float = 5e-3,
        instance_seed: int = INSTANCE_SEED,
    ) -> "TrainedEncoder":
        """15 unknowns, 60 steps on 16 new tasks each, four looks at 32 held-out tasks.

        Either start is scaled to weights with the least eigenvalue 1, which no estimate feels but the steps of Adam do;
        these start anew at each look.
        """
        grid = interval_grid(size, dtype=dtype)
        family = ParametricDiffusion(grid, cosine_modes(grid))
        optimizer, roots = optax.adam(learning_rate, eps=1e-20), []
        for weights in ("mean_inverse", "mean_inverse_square"):
            encoder = WeakFormEncoder.from_family(family, weights=weights)
            scaled = encoder.weight_root / jnp.linalg.norm(encoder.weight_root, ord=-2)
            encoder = WeakFormEncoder(family, scaled, encoder.preconditioner)
            seen = [scaled]
            for number in range(intervals):
                encoder = train_encoder(
                    encoder,
                    tasks=tasks,
                    pairs=pairs,
                    state_noise=state_noise,
                    depth=depth,
                    optimizer=optimizer,
                    steps=interval,
                    key=jax.random.fold_in(jax.random.key(instance_seed), number),
                ).parameters
                seen.append(encoder.weight_root)
            roots.append(jnp.stack(seen))
        random = np.random.default_rng(instance_seed)
        parameters = jnp.asarray(random.uniform(-1, 1, (held_out, 4)), dtype)
        forces = random.standard_normal((held_out, size, pairs))
        states = np.linalg.solve(np.asarray(family.operators(parameters), float), forces).swapaxes(1, 2)
        return cls(
            family=family,
            weight_roots=jnp.stack(roots),
            parameters=parameters,
            states=jnp.asarray(states, dtype),
            steps=tuple(interval * number for number in range(intervals + 1)),
        )

    @classmethod
    def full(
        cls,
        *,
        dtype: jax.typing.DTypeLike = float,
        tasks: int = 64,
        held_out: int = 256,
        interval: int = 200,
        **options,
    ) -> "TrainedEncoder":
        """600 steps on 64 tasks each, 256 held-out tasks; else as ``quick``."""
        return cls.quick(dtype=dtype, tasks=tasks, held_out=held_out, interval=interval, **options)

    def grid(self) -> Float[Array, " points"]:
        """Steps of training."""
        return jnp.asarray(self.steps, self.dtype)

    def predict(self, grid: Float[Array, " points"]) -> dict[str, Curve]:
        """Those of the best weights of each task, and the factors of Kantorovich."""
        operators = self.family.operators(self.parameters, throw=False)
        mean = self.family.mean_operator
        noisy = jnp.broadcast_to(mean[None], operators.shape) if self.of_mean else operators
        designs = _product("kij,tpj->tpik", self.family.mode_operators, self.states)
        whitened = jnp.linalg.solve(noisy[:, None], designs)
        least = jnp.linalg.inv(_product("tpik,tpil->tkl", whitened, whitened))
        precision = least.shape[1] / jnp.trace(least, axis1=1, axis2=2)
        ratios = jnp.linalg.svd(jnp.linalg.solve(mean[None], operators), compute_uv=False) ** 2
        factor = (ratios[:, 0] + ratios[:, -1]) ** 2 / (4 * ratios[:, 0] * ratios[:, -1])
        bounds = (precision, precision, factor, factor)
        return {
            name: Curve(grid, jnp.broadcast_to(bound[None], (len(grid), len(bound))))
            for name, bound in zip(self.observables, bounds, strict=True)
        }

    def sample(self, grid: Float[Array, " points"], *, key: Key) -> dict[str, Curve]:
        """Jacobians of the estimates by the states."""
        del key
        operators = self.family.operators(self.parameters, throw=False)
        loads = _product("tij,tpj->tpi", operators, self.states)
        count = self.parameters.shape[1]
        identity = jnp.eye(count, dtype=self.dtype)

        def variances(root):
            encoder = WeakFormEncoder(self.family, root, identity)

            def read(states, loads):
                return encoder.estimate(states[None], loads[None], throw=False).coefficients[0]

            return jnp.sum(jax.vmap(jax.jacrev(read))(self.states, loads) ** 2, axis=(1, 2, 3)) / count

        starts, points = self.weight_roots.shape[:2]
        flat = jax.lax.map(variances, self.weight_roots.reshape(starts * points, *self.weight_roots.shape[2:]))
        found = flat.reshape(starts, points, -1)
        curves = *(1 / found), *(found[1:, :1] / found)
        at = jnp.searchsorted(self.grid(), grid)
        return {
            name: Curve(grid, values.at[at].get(mode="fill", fill_value=jnp.nan))
            for name, values in zip(self.observables, curves, strict=True)
        }

    def counterfeit(self) -> "TrainedEncoder":
        """The noise that the mean operator would make of that of the states."""
        return dataclasses.replace(self, of_mean=True)

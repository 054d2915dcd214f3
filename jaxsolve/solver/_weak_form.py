"""An encoder for equations that are affine in their coefficients: weighted least squares in the weak form."""

import math
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int

from .._numerics import machine_epsilon
from .._results import RESULTS, first_failure, raise_failures
from .._train import Descent, descend
from .._types import Key
from ..pde import ParametricDiffusion
from ._rollout import rollout, training_loss
from ._systems import product


class Prompts(NamedTuple):
    """Examples `(u_j, f_j)` of an equation, `m` pairs per task.

    Attributes
    ----------
    states
        `u_j`.
    loads
        `f_j`, as load vectors: without noise `A u_j = f_j`.
    """

    states: Float[Array, "tasks pairs size"]
    loads: Float[Array, "tasks pairs size"]


class CoefficientEstimate(eqx.Module):
    """Coefficients of each task, from [`WeakFormEncoder.estimate`][].

    Attributes
    ----------
    coefficients
        `ẑ`; NaN for a task that is not successful.
    condition
        `λ_max/λ_min` of the matrix of the normal equations without ridge; infinite where it is singular.
    result
        One result per task.
    """

    coefficients: Float[Array, "tasks parameters"]
    condition: Float[Array, " tasks"]
    result: RESULTS


class WeakFormEncoder(eqx.Module):
    """Coefficients `z` of `A(z) = A_0 + Σ_k z_k A_k` from pairs `(u_j, f_j)`, linear algebra that attention can do.

    In the weak form the equation is linear in `z`: with `D_j = [A_1 u_j, …, A_K u_j]` and `y_j = f_j − A_0 u_j`,
    `D_j z = y_j`. Least squares with weights `W = Rᵀ R` over `m` pairs has the normal equations

        G ẑ = c,    G = (1/m) Σ_j D_jᵀ W D_j,    c = (1/m) Σ_j D_jᵀ W y_j.

    As a transformer: the token of a pair emits the `K(K + 1)/2 + K` numbers of its `G_j` and `c_j` (14 for `K = 4`);
    one head with equal scores takes their mean over the prompt; a decoder of the library solves the system of size
    `K` from 0 by

        z_{l+1} = z_l + τ Q (c − G z_l),    τ = 2/(λ_min + λ_max),

    with the extreme eigenvalues of each task's `G` and one `Q` for all tasks. At `Q = I` the error contracts by
    `(κ − 1)/(κ + 1)` per step, where `κ` is the condition number of `G`.

    Unit weights suit white noise on the loads: `W` should be the inverse covariance of what is wrong with the
    equation. Noise `s ξ` on the states enters as `s A ξ`, for which the weights `A_0^{-2}` are near the inverse
    covariance; it is in `D_j` too and leaves a bias of order `s²` however long the prompt.

    Attributes
    ----------
    mean_operator, mode_operators
        `A_0` and `A_k`: what is known of the family; data, not trained.
    weight_root
        `R`.
    preconditioner
        `Q`.

    Raises
    ------
    ValueError
        For shapes that do not fit, dtypes that are not one floating dtype, and fewer unknowns than coefficients.
    """

    mean_operator: Float[Array, "size size"]
    mode_operators: Float[Array, "parameters size size"]
    weight_root: Float[Array, "size size"]
    preconditioner: Float[Array, "parameters parameters"]

    def __check_init__(self):
        shapes = [array.shape for array in jax.tree.leaves(self)]
        if len(shapes[0]) != 2 or len(shapes[1]) != 3:
            raise ValueError(
                f"An encoder has a mean operator (size, size) and modes (parameters, size, size); got {shapes[:2]}."
            )
        count, size = shapes[1][:2]
        if shapes != [(size, size), (count, size, size), (size, size), (count, count)] or not count:
            raise ValueError(
                f"{count} modes of size {size} take a mean operator and a root of the weights of shape {(size, size)} "
                f"and a preconditioner of shape {(count, count)}; got {shapes}."
            )
        if size < count:
            raise ValueError(
                f"{count} coefficients take operators of at least {count} unknowns; got {size}. Refine the mesh."
            )
        dtypes = {array.dtype for array in jax.tree.leaves(self)}
        if len(dtypes) != 1 or not jnp.issubdtype(self.mean_operator.dtype, jnp.floating):
            raise ValueError(f"All arrays of an encoder share one floating dtype; got {sorted(map(str, dtypes))}.")

    @classmethod
    def from_family(
        cls,
        family: ParametricDiffusion,
        *,
        weights: Literal["identity", "mean_inverse", "mean_inverse_square"] = "identity",
    ) -> "WeakFormEncoder":
        """An encoder with `W = I`, `A_0^{-1}` or `A_0^{-2}`, and `Q = I`.

        Raises
        ------
        ValueError
            For a family that is not affine, other weights, and as the class does.
        """
        mean = family.mean_operator
        root = jnp.eye(len(mean), dtype=mean.dtype)
        if weights == "mean_inverse":
            root = jax.scipy.linalg.solve_triangular(jnp.linalg.cholesky(mean), root, lower=True)
        elif weights == "mean_inverse_square":
            root = jnp.linalg.inv(mean)
        elif weights != "identity":
            raise ValueError(f"weights is 'identity', 'mean_inverse' or 'mean_inverse_square'; got {weights!r}.")
        modes = family.mode_operators
        return cls(mean, modes, root, jnp.eye(len(modes), dtype=mean.dtype))

    def tokens(
        self,
        states: Float[Array, "tasks pairs size"],
        loads: Float[Array, "tasks pairs size"],
    ) -> Float[Array, "tasks pairs features"]:
        """What each pair emits: the lower triangle of `D_jᵀ W D_j` by rows, then `D_jᵀ W y_j`.

        Raises
        ------
        ValueError
            For prompts without pairs, shapes that do not fit the operators, and another dtype.
        """
        self._check_prompts(states, loads)
        designs = product("ni,kij,tpj->tpkn", self.weight_root, self.mode_operators, states)
        unexplained = loads - product("ij,tpj->tpi", self.mean_operator, states)
        targets = product("ni,tpi->tpn", self.weight_root, unexplained)
        squares = product("tpkn,tpln->tpkl", designs, designs)
        rows, columns = np.tril_indices(len(self.mode_operators))
        return jnp.concatenate([squares[:, :, rows, columns], product("tpkn,tpn->tpk", designs, targets)], axis=2)

    def normal_equations(
        self,
        states: Float[Array, "tasks pairs size"],
        loads: Float[Array, "tasks pairs size"],
    ) -> tuple[Float[Array, "tasks parameters parameters"], Float[Array, "tasks parameters"]]:
        """`G` and `c`: the mean over the prompt of what the tokens emit.

        Raises
        ------
        ValueError
            As ``tokens`` does.
        """
        pooled = self.tokens(states, loads).mean(axis=1)
        count = len(self.mode_operators)
        rows, columns = np.tril_indices(count)
        matrices = jnp.zeros((len(pooled), count, count), pooled.dtype)
        entries = pooled[:, : len(rows)]
        return matrices.at[:, rows, columns].set(entries).at[:, columns, rows].set(entries), pooled[:, len(rows) :]

    def estimate(
        self,
        states: Float[Array, "tasks pairs size"],
        loads: Float[Array, "tasks pairs size"],
        *,
        ridge: float = 0.0,
        throw: bool = True,
    ) -> CoefficientEstimate:
        """`ẑ` by an eigendecomposition of `G`.

        Parameters
        ----------
        states, loads
            `u_j` and `f_j`.
        ridge
            Share of the mean eigenvalue of `G` that is added to its diagonal. It draws `ẑ` towards 0 and makes a
            prompt that does not determine all coefficients admissible.
        throw
            Whether to raise where a task is not finite, or `G` has an eigenvalue that is at most `n ε` times its
            largest one, for operators of size `n`; otherwise ``result`` tells.

        Raises
        ------
        ValueError
            As ``tokens`` does, for a ridge that is negative or not finite, and for tasks as above, with the largest
            condition number.

        >>> from jaxsolve.pde import ParametricDiffusion, cosine_modes, interval_grid
        >>> family = ParametricDiffusion(grid := interval_grid(15), cosine_modes(grid))
        >>> truth = jnp.array([[0.5, -0.5, 0.25, 1.0]])
        >>> prompts = draw_prompts(family.operators(truth), pairs=4, key=jax.random.key(0))
        >>> found = WeakFormEncoder.from_family(family).estimate(*prompts)
        >>> bool(jnp.abs(found.coefficients - truth).max() < 1e-4)
        True
        """
        if not 0 <= ridge < np.inf:
            raise ValueError(f"A ridge is at least 0 and finite; got {ridge}.")
        estimate = self._estimate(states, loads, ridge)
        detail = ""
        if not isinstance(estimate.condition, Tracer):
            largest = float(np.nan_to_num(np.asarray(estimate.condition), nan=np.inf).max(initial=0))
            detail = f" Largest condition number: {largest:.3g}."
        return raise_failures(estimate, estimate.result, of="prompts", detail=detail) if throw else estimate

    def rollout(
        self,
        states: Float[Array, "tasks pairs size"],
        loads: Float[Array, "tasks pairs size"],
        *,
        depth: int,
    ) -> Float[Array, "tasks parameters"]:
        """`ẑ` after ``depth`` steps of the iteration with the preconditioner `τ Q`: the transformer's answer.

        Raises
        ------
        ValueError
            As ``tokens`` and [`jaxsolve.solver.rollout`][] do.
        """
        return _rolled(self, states, loads, depth)

    def trainable(self) -> "WeakFormEncoder":
        """Marks what training changes: ``weight_root`` and ``preconditioner``."""
        marks = jax.tree.map(lambda _: False, self)
        return eqx.tree_at(lambda encoder: (encoder.weight_root, encoder.preconditioner), marks, (True, True))

    @eqx.filter_jit
    def _estimate(self, states, loads, ridge):
        matrices, sides = self.normal_equations(states, loads)
        size, count = self.mean_operator.shape[0], matrices.shape[1]
        finite = jnp.isfinite(matrices).all(axis=(1, 2)) & jnp.isfinite(sides).all(axis=1)
        identity = jnp.eye(count, dtype=matrices.dtype)
        eigenvalues, vectors = jnp.linalg.eigh(jnp.where(finite[:, None, None], matrices, identity[None]))
        smallest, largest = eigenvalues[:, 0], eigenvalues[:, -1]
        condition = jnp.where(smallest > 0, largest / jnp.where(smallest > 0, smallest, 1), jnp.inf)
        shifted = eigenvalues + ridge * eigenvalues.mean(axis=1, keepdims=True)
        full = shifted[:, 0] > size * machine_epsilon(matrices.dtype) * shifted[:, -1]
        holds = finite & full
        scaled = product("tij,ti->tj", vectors, sides) / jnp.where(holds[:, None], shifted, 1)
        coefficients = product("tij,tj->ti", vectors, scaled)
        return CoefficientEstimate(
            coefficients=jnp.where(holds[:, None], coefficients, jnp.nan),
            condition=jnp.where(finite, condition, jnp.nan),
            result=first_failure((~finite, RESULTS.not_finite), (~full, RESULTS.rank_deficient)),
        )

    def _check_prompts(self, states, loads):
        size = self.mean_operator.shape[0]
        if states.ndim != 3 or states.shape != loads.shape or states.shape[2] != size or not states.shape[1]:
            raise ValueError(
                f"Prompts are states and loads of shape (tasks, pairs, {size}), with at least one pair; got "
                f"{states.shape} and {loads.shape}."
            )
        if {states.dtype, loads.dtype} != {self.mean_operator.dtype}:
            raise ValueError(
                f"This encoder has dtype {self.mean_operator.dtype}; got states and loads of dtype {states.dtype} and "
                f"{loads.dtype}. Cast one of them with astype."
            )


def draw_prompts(
    operators: Float[Array, "tasks size size"],
    *,
    pairs: int,
    load_noise: float | Float[Array, ""] = 0.0,
    state_noise: float | Float[Array, ""] = 0.0,
    key: Key,
) -> Prompts:
    """Prompts of each task: `f_j ~ N(0, I)`, `u_j = A^{-1} f_j`, both observed with noise.

    What is observed is `f_j + s_f ξ_j` and `u_j + s_u ζ_j`, with independent standard normal `ξ` and `ζ`: the noise of
    the loads is relative to loads of size one, that of the states absolute.

    Parameters
    ----------
    operators
        `A`.
    pairs
        `m`.
    load_noise, state_noise
        `s_f` and `s_u`.
    key
        For forces and noise. The forces do not depend on the noise.

    Raises
    ------
    ValueError
        For operators that are not a batch of square matrices, and fewer than one pair.
    """
    if operators.ndim != 3 or operators.shape[1] != operators.shape[2]:
        raise ValueError(f"operators have shape (tasks, size, size); got {operators.shape}.")
    if pairs < 1:
        raise ValueError(f"A prompt has at least one pair; got {pairs}.")
    shape = (operators.shape[0], pairs, operators.shape[1])

    def normal(key):
        return jax.random.normal(key, (math.prod(shape),), operators.dtype).reshape(shape)

    force_key, load_key, state_key = jax.random.split(key, 3)
    forces = normal(force_key)
    states = jnp.linalg.solve(operators, forces.swapaxes(1, 2)).swapaxes(1, 2)
    return Prompts(states + state_noise * normal(state_key), forces + load_noise * normal(load_key))


def project_to_box(
    coefficients: Float[Array, "tasks parameters"], *, radius: float = 1.0
) -> tuple[Float[Array, "tasks parameters"], Int[Array, ""]]:
    """The nearest point of the box `|z_k| ≤ radius` for each task, and how many tasks it moved.

    A NaN stays NaN and counts as moved.

    Raises
    ------
    ValueError
        For a radius that is not positive and finite.

    >>> projected, moved = project_to_box(jnp.array([[0.5, 2.0], [0.0, 1.0]]))
    >>> projected.tolist(), int(moved)
    ([[0.5, 1.0], [0.0, 1.0]], 1)
    """
    if not 0 < radius < np.inf:
        raise ValueError(f"A box has a radius that is positive and finite; got {radius}.")
    inside: Bool[Array, "tasks parameters"] = jnp.abs(coefficients) <= radius
    return jnp.clip(coefficients, -radius, radius), jnp.sum(~inside.all(axis=1))


def train_encoder(
    encoder: WeakFormEncoder,
    family: ParametricDiffusion,
    *,
    tasks: int,
    pairs: int,
    load_noise: float = 0.0,
    state_noise: float = 0.0,
    radius: float = 1.0,
    depth: int,
    optimizer: optax.GradientTransformation,
    steps: int,
    throw: bool = True,
    key: Key,
) -> Descent:
    """Train weights and preconditioner of an encoder by descent through its whole rollout, on new tasks at every step.

    The loss is `1/(2 N K) Σ_i ‖ẑ_i − z_i‖²` over `N` tasks of `K` coefficients, half their mean squared error, with
    `z` uniform in the box. Errors are small: give an optimizer that divides by the size of gradients a safeguard far
    below them, such as ``optax.adam(rate, eps=1e-20)``.

    Parameters
    ----------
    encoder
        The start.
    family
        Where tasks come from; affine, of the dtype of the encoder.
    tasks
        `N`, in each step.
    pairs, load_noise, state_noise
        Of the prompts, as in [`draw_prompts`][].
    radius
        Of the box `|z_k| ≤ radius`.
    depth
        Steps of the encoder's rollout, static.
    optimizer, steps, throw
        As in [`jaxsolve.solver.pretrain`][].
    key
        For tasks and prompts.

    Returns
    -------
    run
        ``run.parameters`` is the trained encoder; ``run.losses`` are the losses before each step, each on its own
        tasks.

    Raises
    ------
    ValueError
        As ``encoder.rollout`` does, for fewer than one task, and for a loss that is not finite.
    """
    if tasks < 1:
        raise ValueError(f"A step takes at least one task; got {tasks}.")
    noise = jnp.asarray([load_noise, state_noise, radius], encoder.mean_operator.dtype)
    loss = eqx.Partial(_loss_and_gradient, family=family, noise=noise, shape=(tasks, pairs), depth=depth)
    return descend(loss, encoder, optimizer, steps=steps, trainable=encoder.trainable(), throw=throw, key=key)


@eqx.filter_jit
def _rolled(encoder, states, loads, depth):
    matrices, sides = encoder.normal_equations(states, loads)
    eigenvalues = jnp.linalg.eigvalsh(matrices)
    steps = 2 / (eigenvalues[:, 0] + eigenvalues[:, -1])
    preconditioners = steps[:, None, None] * encoder.preconditioner[None]
    return rollout(preconditioners, matrices, sides, jnp.zeros_like(sides), depth=depth)


def _loss_and_gradient(encoder, *, family, noise, shape, depth, key):
    load_noise, state_noise, radius = noise
    tasks, pairs = shape
    task_key, prompt_key = jax.random.split(key)
    coefficients = radius * jax.random.uniform(task_key, (tasks, len(family.modes)), noise.dtype, -1, 1)
    operators = family.operators(coefficients, throw=False)
    prompts = draw_prompts(operators, pairs=pairs, load_noise=load_noise, state_noise=state_noise, key=prompt_key)

    def loss(encoder):
        return training_loss(encoder.rollout(*prompts, depth=depth), coefficients)

    return eqx.filter_value_and_grad(loss)(encoder)

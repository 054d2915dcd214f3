"""An encoder for the parameters of an equation: weighted least squares in the weak form, linearised where need be."""

from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from .._numerics import machine_epsilon
from .._results import RESULTS, first_failure, raise_failures
from ..pde import ParametricDiffusion
from ._rollout import rollout
from ._systems import product


class CoefficientEstimate(eqx.Module):
    """Coefficients of each task, from [`WeakFormEncoder.estimate`][].

    Attributes
    ----------
    coefficients
        `ẑ`; NaN for a task whose prompt is not finite or does not determine it.
    condition
        `λ_max/λ_min` of the matrix of the normal equations of the last pass, without ridge; infinite where it is
        singular.
    change
        `max_k |δ_k|` of the last pass. Where passes contract by one half or better it bounds what more of them would
        change. A single pass starts from 0 and changes all.
    result
        One result per task.
    """

    coefficients: Float[Array, "tasks parameters"]
    condition: Float[Array, " tasks"]
    change: Float[Array, " tasks"]
    result: RESULTS


class WeakFormEncoder(eqx.Module):
    """Parameters `z` of `A(z)` from pairs `(u_j, f_j)` with `A(z) u_j = f_j`, by linear algebra that attention can do.

    The weak form is linear in the coefficient function, `A(z) u = A(a(z)) u`, and its derivative by `z_k` is
    `A_k(z) = ∂A(z)/∂z_k`, assembled from `∂a/∂z_k`. A pass linearises at the `z` that it is given: with
    `D_j = [A_1(z) u_j, …, A_K(z) u_j]` and `y_j = f_j − A(z) u_j`, least squares with weights `W = Rᵀ R` over `m` pairs
    has the normal equations

        G δ = c,    G = (1/m) Σ_j D_jᵀ W D_j,    c = (1/m) Σ_j D_jᵀ W y_j,    z ← z + δ,

    a Gauss-Newton step. From `z = 0`, one pass is all of it for an affine coefficient, where `A_k` does not depend on
    `z`. For a log-affine one each pass roughly squares the error of the pass before, down to the effect of the noise:
    six to nine passes reach rounding for `Σ_k |z_k ψ_k|` up to 4. Without noise the truth is a fixed point; with noise
    of the loads of size `s`, `ẑ − z` is `G^{-1} (1/m) Σ_j D_jᵀ W s ξ_j` at the true `z`, up to terms of order `s²`.

    As a transformer: in a pass the token of a pair emits the `K(K + 1)/2 + K` numbers of its `G_j` and `c_j` (14 for
    `K = 4`); one head with equal scores takes their mean over the prompt; a decoder of the library solves the system
    of size `K` from 0 by

        δ_{l+1} = δ_l + τ Q (c − G δ_l),    τ = 2/(λ_min + λ_max),

    with the extreme eigenvalues of each task's `G` and one `Q` for all tasks. At `Q = I` the error contracts by
    `(κ − 1)/(κ + 1)` per step, where `κ` is the condition number of `G`.

    Unit weights suit white noise on the loads: `W` should be the inverse covariance of what is wrong with the
    equation. Noise `s ξ` on the states enters as `s A ξ`, for which the weights `A_0^{-2}` are near the inverse
    covariance; it is in `D_j` too and leaves a bias of order `s²` however long the prompt.

    Attributes
    ----------
    family
        What is known of the equation: data, not trained.
    weight_root
        `R`.
    preconditioner
        `Q`.

    Raises
    ------
    ValueError
        For shapes that do not fit, dtypes that are not that of the family, and fewer unknowns than parameters.
    """

    family: ParametricDiffusion
    weight_root: Float[Array, "size size"]
    preconditioner: Float[Array, "parameters parameters"]

    def __check_init__(self):
        count, size, dtype = len(self.family.modes), self._size, self.family.modes.dtype
        shapes = self.weight_root.shape, self.preconditioner.shape
        if shapes != ((size, size), (count, count)):
            raise ValueError(
                f"{count} modes of size {size} take a root of the weights of shape {(size, size)} and a preconditioner "
                f"of shape {(count, count)}; got {shapes}."
            )
        if size < count:
            raise ValueError(
                f"{count} coefficients take operators of at least {count} unknowns; got {size}. Refine the mesh."
            )
        if {self.weight_root.dtype, self.preconditioner.dtype} != {dtype}:
            raise ValueError(
                f"All arrays of an encoder have the dtype of its family, {dtype}; got {self.weight_root.dtype} and "
                f"{self.preconditioner.dtype}. Cast them with astype."
            )

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
            For other weights, and as the class does.
        """
        mean = family.mean_operator
        root = jnp.eye(len(mean), dtype=mean.dtype)
        if weights == "mean_inverse":
            root = jax.scipy.linalg.solve_triangular(jnp.linalg.cholesky(mean), root, lower=True)
        elif weights == "mean_inverse_square":
            root = jnp.linalg.inv(mean)
        elif weights != "identity":
            raise ValueError(f"weights is 'identity', 'mean_inverse' or 'mean_inverse_square'; got {weights!r}.")
        return cls(family, root, jnp.eye(len(family.modes), dtype=mean.dtype))

    def tokens(
        self,
        states: Float[Array, "tasks pairs size"],
        loads: Float[Array, "tasks pairs size"],
        at: Float[Array, "tasks parameters"] | None = None,
    ) -> Float[Array, "tasks pairs features"]:
        """What each pair emits in a pass: the lower triangle of `D_jᵀ W D_j` by rows, then `D_jᵀ W y_j`.

        Parameters
        ----------
        states, loads
            `u_j` and `f_j`.
        at
            Where the pass linearises; 0 by default.

        Raises
        ------
        ValueError
            For prompts without pairs, shapes that do not fit the family, and another dtype.
        """
        self._check_prompts(states, loads, at)
        if at is None:
            mean = jnp.zeros((1, len(self.family.modes)), self.family.modes.dtype)
            designs = product("kij,tpj->tpki", self.family.tangent_operators(mean)[0], states)
            unexplained = loads - product("ij,tpj->tpi", self.family.mean_operator, states)
        else:
            designs = product("tkij,tpj->tpki", self.family.tangent_operators(at), states)
            unexplained = loads - product("tij,tpj->tpi", self.family.operators(at, throw=False), states)
        designs = product("ni,tpki->tpkn", self.weight_root, designs)
        targets = product("ni,tpi->tpn", self.weight_root, unexplained)
        squares = product("tpkn,tpln->tpkl", designs, designs)
        rows, columns = np.tril_indices(len(self.family.modes))
        return jnp.concatenate([squares[:, :, rows, columns], product("tpkn,tpn->tpk", designs, targets)], axis=2)

    def normal_equations(
        self,
        states: Float[Array, "tasks pairs size"],
        loads: Float[Array, "tasks pairs size"],
        at: Float[Array, "tasks parameters"] | None = None,
    ) -> tuple[Float[Array, "tasks parameters parameters"], Float[Array, "tasks parameters"]]:
        """`G` and `c` of a pass: the mean over the prompt of what the tokens emit.

        Raises
        ------
        ValueError
            As ``tokens`` does.
        """
        pooled = self.tokens(states, loads, at).mean(axis=1)
        count = len(self.family.modes)
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
        passes: int | None = None,
        throw: bool = True,
    ) -> CoefficientEstimate:
        """`ẑ` by an eigendecomposition of `G` in each pass.

        Parameters
        ----------
        states, loads
            `u_j` and `f_j`.
        ridge
            Share of the mean eigenvalue of `G` that is added to its diagonal, as the penalty `‖z‖²` is. It draws `ẑ`
            towards 0 and makes a prompt that does not determine all coefficients admissible.
        passes
            How often to linearise, static; by default once for an affine coefficient, which is exact, and ten times
            for another.
        throw
            Whether to raise where a task is not finite; where `G` has an eigenvalue that is at most `n ε` times its
            largest one, for operators of size `n`; and where the last of several passes changes more than half of what
            the one before did and more than `ε^{1/2} (1 + max_k |ẑ_k|)`. Otherwise ``result`` tells.

        Raises
        ------
        ValueError
            As ``tokens`` does, for a ridge that is negative or not finite, for fewer than one pass, and for tasks as
            above, with the largest condition number.

        >>> from jaxsolve.pde import ParametricDiffusion, cosine_modes, interval_grid
        >>> from jaxsolve.solver import draw_prompts
        >>> truth = jnp.array([[0.5, -0.5, 0.25, 1.0]])
        >>> for link in ("affine", "log-affine"):
        ...     family = ParametricDiffusion(grid := interval_grid(15), cosine_modes(grid), link=link)
        ...     prompts = draw_prompts(family.operators(truth), pairs=4, key=jax.random.key(0))
        ...     found = WeakFormEncoder.from_family(family).estimate(*prompts)
        ...     print(bool(jnp.abs(found.coefficients - truth).max() < 1e-4))
        True
        True
        """
        if not 0 <= ridge < np.inf:
            raise ValueError(f"A ridge is at least 0 and finite; got {ridge}.")
        estimate = self._estimate(states, loads, ridge, self._passes(passes))
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
        passes: int | None = None,
    ) -> Float[Array, "tasks parameters"]:
        """`ẑ` where each pass takes ``depth`` steps of the iteration with the preconditioner `τ Q`: the transformer's.

        Raises
        ------
        ValueError
            As ``tokens`` and [`jaxsolve.solver.rollout`][] do, and for fewer than one pass.
        """
        return _rolled(self, states, loads, depth, self._passes(passes))

    def trainable(self) -> "WeakFormEncoder":
        """Marks what training changes: ``weight_root`` and ``preconditioner``."""
        marks = jax.tree.map(lambda _: False, self)
        return eqx.tree_at(lambda encoder: (encoder.weight_root, encoder.preconditioner), marks, (True, True))

    @property
    def _size(self) -> int:
        return self.family.discretisation.assembler.size

    def _passes(self, passes: int | None) -> int:
        if passes is None:
            return 1 if self.family.link == "affine" else 10
        if passes < 1:
            raise ValueError(f"An encoder takes at least one pass; got {passes}.")
        return passes

    @eqx.filter_jit
    def _estimate(self, states, loads, ridge, passes):
        first = self._pass(states, loads, ridge, None)
        if passes == 1:
            return _estimated(first, jnp.full_like(first.change, jnp.inf))

        def again(carry, _):
            last, _ = carry
            new = self._pass(states, loads, ridge, last.coefficients)
            new = new._replace(finite=last.finite & new.finite, full=last.full & new.full)
            return (new, last.change), None

        (last, before), _ = jax.lax.scan(again, (first, first.change), length=passes - 1)
        return _estimated(last, before)

    def _pass(self, states, loads, ridge, at):
        matrices, sides = self.normal_equations(states, loads, at)
        start = jnp.zeros_like(sides) if at is None else at
        finite = jnp.isfinite(matrices).all(axis=(1, 2)) & jnp.isfinite(sides).all(axis=1)
        identity = jnp.eye(matrices.shape[1], dtype=matrices.dtype)
        eigenvalues, vectors = jnp.linalg.eigh(jnp.where(finite[:, None, None], matrices, identity[None]))
        smallest, largest = eigenvalues[:, 0], eigenvalues[:, -1]
        condition = jnp.where(smallest > 0, largest / jnp.where(smallest > 0, smallest, 1), jnp.inf)
        penalty = ridge * eigenvalues.mean(axis=1, keepdims=True)
        shifted = eigenvalues + penalty
        full = shifted[:, 0] > self._size * machine_epsilon(matrices.dtype) * shifted[:, -1]
        holds = (finite & full)[:, None]
        scaled = product("tij,ti->tj", vectors, sides - penalty * start) / jnp.where(holds, shifted, 1)
        step = jnp.where(holds, product("tij,tj->ti", vectors, scaled), 0)
        return _Pass(start + step, jnp.abs(step).max(axis=1), condition, finite, full)

    def _check_prompts(self, states, loads, at):
        size, dtype, count = self._size, self.family.modes.dtype, len(self.family.modes)
        if states.ndim != 3 or states.shape != loads.shape or states.shape[2] != size or not states.shape[1]:
            raise ValueError(
                f"Prompts are states and loads of shape (tasks, pairs, {size}), with at least one pair; got "
                f"{states.shape} and {loads.shape}."
            )
        if at is not None and at.shape != (len(states), count):
            raise ValueError(f"A pass linearises at parameters of shape {(len(states), count)}; got {at.shape}.")
        if {states.dtype, loads.dtype} | (set() if at is None else {at.dtype}) != {dtype}:
            raise ValueError(
                f"This encoder has dtype {dtype}; got states and loads of dtype {states.dtype} and {loads.dtype}"
                f"{'' if at is None else f', parameters of dtype {at.dtype}'}. Cast them with astype."
            )


class _Pass(NamedTuple):
    coefficients: Float[Array, "tasks parameters"]
    change: Float[Array, " tasks"]
    condition: Float[Array, " tasks"]
    finite: Bool[Array, " tasks"]
    full: Bool[Array, " tasks"]


def _estimated(last, before):
    holds = last.finite & last.full
    size = 1 + jnp.abs(last.coefficients).max(axis=1)
    moves = (last.change > before / 2) & (last.change > machine_epsilon(size.dtype) ** 0.5 * size)
    return CoefficientEstimate(
        coefficients=jnp.where(holds[:, None], last.coefficients, jnp.nan),
        condition=jnp.where(last.finite, last.condition, jnp.nan),
        change=last.change,
        result=first_failure(
            (~last.finite, RESULTS.not_finite), (~last.full, RESULTS.rank_deficient), (moves, RESULTS.not_converged)
        ),
    )


@eqx.filter_jit
def _rolled(encoder, states, loads, depth, passes):
    def one_pass(at):
        matrices, sides = encoder.normal_equations(states, loads, at)
        eigenvalues = jnp.linalg.eigvalsh(matrices)
        steps = 2 / (eigenvalues[:, 0] + eigenvalues[:, -1])
        preconditioners = steps[:, None, None] * encoder.preconditioner[None]
        step = rollout(preconditioners, matrices, sides, jnp.zeros_like(sides), depth=depth)
        return step if at is None else at + step

    found = one_pass(None)
    if passes == 1:
        return found
    return jax.lax.scan(lambda at, _: (one_pass(at), None), found, length=passes - 1)[0]

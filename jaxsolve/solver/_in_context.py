"""An encoder that reads tasks from prompts: its exact moments, its risk, and what pretraining on N tasks gives."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._numerics import machine_epsilon
from .._types import Key, Scalar
from ._encoder import checked_covariance
from ._shapes import checked_count, refuse
from ._systems import product


def prompt_moment(
    task_covariance: Float[Array, "size size"], *, prompt_size: int, noise_variance: Scalar
) -> Float[Array, "size size"]:
    """The second moment of the statistic that a prompt gives a linear reader.

    A task `b ~ N(0, C)` is shown by `m` pairs `x_j ~ N(0, I_K)`, `y_j = b · x_j + τ ε_j`, and linear attention sees
    `s = 1/m Σ_j y_j x_j`. Exactly,

        E[b sᵀ] = C,    S_m = E[s sᵀ] = (1 + 1/m) C + (tr C + τ²)/m · I.

    Gradient descent of an encoder `Γ` on `E ‖b − Γ s‖² / 2` follows [`encoder_trajectory`][] with `S_m` in the place
    of the covariance and [`in_context_encoder`][] as the target. That holds for one matrix `Γ`, not for a product of
    key and query weights that are trained apart.

    Parameters
    ----------
    task_covariance
        `C`, symmetric positive semidefinite; of rank `r < K` for low-rank tasks.
    prompt_size
        `m`, static, at least 1.
    noise_variance
        `τ²`, of one label.

    Raises
    ------
    ValueError
        For an empty prompt, shapes and dtypes that do not fit, a negative variance, and a covariance that is not
        symmetric positive semidefinite. Under a transformation the last two are run-time errors.

    >>> prompt_moment(jnp.diag(jnp.array([2.0, 0.0])), prompt_size=2, noise_variance=jnp.array(1.0)).tolist()
    [[4.5, 0.0], [0.0, 1.5]]
    """
    prompt_size, covariance = _checked(task_covariance, prompt_size, noise_variance)
    return _moment(covariance, prompt_size, noise_variance)


def in_context_encoder(
    task_covariance: Float[Array, "size size"], *, prompt_size: int, noise_variance: Scalar
) -> Float[Array, "size size"]:
    """The encoder of smallest risk, `Γ_* = C S_m⁻¹`; parameters and errors are those of [`prompt_moment`][].

    >>> best = in_context_encoder(jnp.diag(jnp.array([2.0, 0.0])), prompt_size=2, noise_variance=jnp.array(1.0))
    >>> best.round(4).tolist()
    [[0.4444, 0.0], [0.0, 0.0]]
    """
    prompt_size, covariance = _checked(task_covariance, prompt_size, noise_variance)
    eigenvalues, vectors = jnp.linalg.eigh(covariance)
    moments = _mode_moments(eigenvalues, prompt_size, noise_variance)
    gains = jnp.where(moments > 0, eigenvalues / jnp.where(moments > 0, moments, 1), 0)
    return product("ik,k,jk->ij", vectors, gains, vectors)


def in_context_risk(
    encoder: Float[Array, "size size"],
    task_covariance: Float[Array, "size size"],
    *,
    prompt_size: int,
    noise_variance: Scalar,
) -> Scalar:
    """The risk `E ‖b − Γ s‖² = tr C − 2 tr(Γ C) + tr(Γ S_m Γᵀ)` of an encoder of prompts.

    A sum over the `K` entries of the task, not a mean: the mean square of the prediction `x_q · Γ s` at a query
    `x_q ~ N(0, I)`, without its noise. Of the best encoder, with eigenvalues `c_k` of `C`,

        R_*(m) = Σ_k c_k [1 − c_k / ((1 + 1/m) c_k + (tr C + τ²)/m)] → [(r + 1) tr C + r τ²] / m,

    for tasks of rank `r` and long prompts. The parameters are `Γ` and those of [`prompt_moment`][].

    Raises
    ------
    ValueError
        As [`prompt_moment`][] does, and for an encoder that does not fit.

    >>> one = jnp.eye(1)
    >>> float(in_context_risk(0.5 * one, one, prompt_size=2, noise_variance=jnp.array(1.0)))
    0.625
    """
    prompt_size, covariance = _checked(task_covariance, prompt_size, noise_variance)
    if encoder.shape != covariance.shape or encoder.dtype != covariance.dtype:
        raise ValueError(
            f"The encoder has the shape and dtype of the covariance, {covariance.shape} of {covariance.dtype}; got "
            f"{encoder.shape} of {encoder.dtype}."
        )
    second = product("ij,jk->ik", encoder, _moment(covariance, prompt_size, noise_variance))
    return jnp.trace(covariance) - 2 * jnp.sum(encoder * covariance.T) + jnp.sum(second * encoder)


def prompt_statistics(
    tasks: Float[Array, "tasks size"], *, prompt_size: int, noise_variance: Scalar, key: Key
) -> Float[Array, "tasks size"]:
    """The statistic `s = 1/m Σ_j y_j x_j` of a drawn prompt for each task, as in [`prompt_moment`][].

    Prompts are drawn for a few tasks at a time, so that memory does not grow with the number of tasks times the
    prompt. Task `i` uses `fold_in(key, i)`.

    Raises
    ------
    ValueError
        For an empty prompt, tasks that are not one row each, and a negative variance.

    >>> prompt_statistics(jnp.ones((3, 2)), prompt_size=4, noise_variance=jnp.array(0.1), key=jax.random.key(0)).shape
    (3, 2)
    """
    prompt_size = checked_count(prompt_size, "prompt_size")
    if tasks.ndim != 2 or not tasks.size:
        raise ValueError(f"tasks have shape (tasks, size), not empty; got {tasks.shape}.")
    return _statistics(tasks, prompt_size, _not_negative(noise_variance), key)


def regress_encoder(
    statistics: Float[Array, "tasks inputs"], tasks: Float[Array, "tasks size"], *, ridge: Scalar | None = None
) -> Float[Array, "size inputs"]:
    """The encoder that pretraining on `N` tasks ends at: least squares of tasks on statistics.

    With statistics `s_i` and tasks `b_i`, the minimum of `1/(2N) Σ_i ‖b_i − Γ s_i‖² + ρ/2 ‖Γ‖²`,

        Γ = (Σ_i b_i s_iᵀ) (Σ_i s_i s_iᵀ + N ρ I)⁻¹.

    Without a ridge, and above all where there are fewer tasks than inputs, it is the solution of smallest norm, which
    is where gradient descent from zero ends. With long prompts its excess over the best risk falls as `1/N`; it peaks
    where the number of tasks is that of the inputs.

    Parameters
    ----------
    statistics, tasks
        `s` and `b`, one row per task.
    ridge
        `ρ`, at least 0; ``None`` is no ridge.

    Raises
    ------
    ValueError
        Without tasks, for shapes and dtypes that do not fit, and for a negative ridge.

    >>> found = regress_encoder(jnp.array([[1.0, 1.0]]), jnp.array([[2.0]]))
    >>> found.round(12).tolist()
    [[1.0, 1.0]]
    """
    if statistics.ndim != 2 or tasks.ndim != 2 or len(statistics) != len(tasks) or not statistics.size * tasks.size:
        raise ValueError(
            "An encoder is regressed from at least one task, statistics (tasks, inputs) and tasks (tasks, size); got "
            f"{statistics.shape} and {tasks.shape}."
        )
    if statistics.dtype != tasks.dtype or not jnp.issubdtype(tasks.dtype, jnp.floating):
        raise ValueError(f"Both share one floating dtype; got {statistics.dtype} and {tasks.dtype}.")
    left, singular, right = jnp.linalg.svd(statistics, full_matrices=False)
    if ridge is None:
        kept = singular > max(statistics.shape) * machine_epsilon(statistics.dtype) * singular[0]
        filters = jnp.where(kept, 1 / jnp.where(kept, singular, 1), 0)
    else:
        ridge = refuse(ridge, ~(ridge >= 0), "The ridge is at least 0; got a negative one or NaN.")
        scale = singular**2 + len(tasks) * ridge
        filters = jnp.where(scale > 0, singular / jnp.where(scale > 0, scale, 1), 0)
    return product("ti,tk,k,kj->ij", tasks, left, filters, right)


_NUMBERS_AT_A_TIME = 1 << 20
"""How many numbers of prompts are drawn at a time."""


@partial(jax.jit, static_argnums=1)
def _statistics(tasks, prompt_size, noise_variance, key):
    count, size = tasks.shape
    together = min(count, max(1, _NUMBERS_AT_A_TIME // (prompt_size * size)))

    def one(numbered):
        number, task = numbered
        # Drawn flat: several axes under vmap take three times as long to compile.
        flat = jax.random.normal(jax.random.fold_in(key, number), (prompt_size * (size + 1),), tasks.dtype)
        inputs, noise = flat[: prompt_size * size].reshape(prompt_size, size), flat[prompt_size * size :]
        labels = product("jk,k->j", inputs, task) + jnp.sqrt(noise_variance) * noise
        return product("j,jk->k", labels, inputs) / prompt_size

    # Padded to whole blocks: a remainder would compile the draw a second time.
    numbers = jnp.arange(-(-count // together) * together, dtype=jnp.uint32)
    padded = jnp.pad(tasks, ((0, len(numbers) - count), (0, 0)))
    return jax.lax.map(one, (numbers, padded), batch_size=together)[:count]


def _checked(covariance, prompt_size, noise_variance):
    prompt_size = checked_count(prompt_size, "prompt_size")
    if covariance.ndim != 2 or covariance.shape[0] != covariance.shape[1] or not covariance.size:
        raise ValueError(f"The covariance of tasks is a square matrix, not empty; got shape {covariance.shape}.")
    if noise_variance.shape or covariance.dtype != noise_variance.dtype:
        raise ValueError(
            "noise_variance is a scalar array in the dtype of the covariance; got shape "
            f"{noise_variance.shape}, {noise_variance.dtype} and {covariance.dtype}."
        )
    covariance = refuse(covariance, ~(noise_variance >= 0), "The variance of the noise is at least 0; got another.")
    return prompt_size, checked_covariance(covariance)


def _not_negative(noise_variance):
    return refuse(noise_variance, ~(noise_variance >= 0), "The variance of the noise is at least 0; got another.")


def _mode_moments(eigenvalues, prompt_size, noise_variance):
    return (1 + 1 / prompt_size) * eigenvalues + (jnp.sum(eigenvalues) + noise_variance) / prompt_size


def _moment(covariance, prompt_size, noise_variance):
    isotropic = (jnp.trace(covariance) + noise_variance) / prompt_size
    return (1 + 1 / prompt_size) * covariance + isotropic * jnp.eye(covariance.shape[0], dtype=covariance.dtype)

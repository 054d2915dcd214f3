"""Descent on the weights of a weak-form encoder, through its whole rollout."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from .._train import Descent, descend
from .._types import Key
from ._prompts import draw_prompts
from ._rollout import training_loss
from ._weak_form import WeakFormEncoder


def train_encoder(
    encoder: WeakFormEncoder,
    *,
    tasks: int,
    pairs: int,
    load_noise: float = 0.0,
    state_noise: float = 0.0,
    radius: float = 1.0,
    depth: int,
    passes: int | None = None,
    optimizer: optax.GradientTransformation,
    steps: int,
    throw: bool = True,
    key: Key,
) -> Descent:
    """Train weights and preconditioner of an encoder by descent through its whole rollout, on new tasks at every step.

    The loss is `1/(2 N K) Σ_i ‖ẑ_i − z_i‖²` over `N` tasks of `K` coefficients, half their mean squared error, with
    `z` uniform in the box. Errors are small: give an optimizer that divides by the size of gradients a safeguard far
    below them, such as ``optax.adam(rate, eps=1e-20)``.

    A rollout of few steps leaves an error of its own, which training then lowers at the price of a larger variance:
    weigh the trained weights by the error of ``estimate``. For noise on the states no weights are better than
    `A_0^{-2}` by more than `(α + β)²/(4 α β)`, with the extreme eigenvalues `α` and `β` of `A_0^{-1} A(z)² A_0^{-1}`.

    Parameters
    ----------
    encoder
        The start. Tasks come from its family.
    tasks
        `N`, in each step.
    pairs, load_noise, state_noise
        Of the prompts, as in [`draw_prompts`][].
    radius
        Of the box `|z_k| ≤ radius`.
    depth, passes
        Of the encoder's rollout, static.
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
    noise = jnp.asarray([load_noise, state_noise, radius], encoder.family.modes.dtype)
    loss = eqx.Partial(_loss_and_gradient, noise=noise, shape=(tasks, pairs), depth=depth, passes=passes)
    return descend(loss, encoder, optimizer, steps=steps, trainable=encoder.trainable(), throw=throw, key=key)


def _loss_and_gradient(encoder, *, noise, shape, depth, passes, key):
    load_noise, state_noise, radius = noise
    tasks, pairs = shape
    task_key, prompt_key = jax.random.split(key)
    coefficients = radius * jax.random.uniform(task_key, (tasks, len(encoder.family.modes)), noise.dtype, -1, 1)
    operators = encoder.family.operators(coefficients, throw=False)
    prompts = draw_prompts(operators, pairs=pairs, load_noise=load_noise, state_noise=state_noise, key=prompt_key)

    def loss(encoder):
        return training_loss(encoder.rollout(*prompts, depth=depth, passes=passes), coefficients)

    return eqx.filter_value_and_grad(loss)(encoder)

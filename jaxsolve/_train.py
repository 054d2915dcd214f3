"""Gradient descent as one compiled loop that records what is asked for and nothing else."""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PyTree

from ._results import RESULTS, first_failure, raise_failures
from ._types import Key


class Descent(eqx.Module):
    """What a run of [`descend`][] leaves behind.

    Attributes
    ----------
    parameters
        After the last step, in the structure of those before the first.
    losses
        Entry `s` is the loss before step `s`, counted from zero: the loss whose gradient the step takes. The loss of
        the final parameters is not among them.
    recorded_steps
        How many steps had been taken at each record: `0, r, 2r, …, steps` for ``record_every`` `r`.
    records
        What ``observe`` returned for the parameters after so many steps, stacked along a new leading axis; ``None``
        without ``observe``.
    result
        One result per step: whether its loss was finite.
    """

    parameters: PyTree
    losses: Float[Array, " steps"]
    recorded_steps: Int[Array, " records"]
    records: PyTree
    result: RESULTS


def descend(
    value_and_gradient: Callable[..., tuple[Float[Array, ""], PyTree]],
    parameters: PyTree,
    optimizer: optax.GradientTransformation,
    *,
    steps: int,
    observe: Callable[[PyTree], PyTree] | None = None,
    record_every: int = 1,
    trainable: PyTree = eqx.is_inexact_array,
    throw: bool = True,
    key: Key | None = None,
) -> Descent:
    """Train by `θ_{s+1} = θ_s + u_s`, the update `u_s` made by an Optax optimizer from the gradient at `θ_s`.

    Without a key, ``value_and_gradient(parameters)`` is called at every step: full-batch training. With one, step `s`
    calls ``value_and_gradient(parameters, key=fold_in(key, s))``: online training, in which the key draws the batch.
    Nothing is kept of a step but its loss, so that memory does not grow with the run except by the records.

    Optimizers of Optax rely on implicit promotion of dtypes. They run with standard promotion whatever the setting
    outside, which applies to ``value_and_gradient`` and ``observe``; parameters keep their dtypes.

    Parameters
    ----------
    value_and_gradient
        A pure function that returns a scalar loss and its gradient, in the structure of the parameters (with ``None``
        where a leaf has no gradient, as Equinox returns it). Give it its data by ``equinox.Partial``: the arrays in
        a partial are arguments of the compiled loop, those in a closure are constants of it.
    parameters
        Any pytree, for instance an Equinox module.
    optimizer
        Its state starts anew and is dropped at the end.
    steps, record_every
        How many steps, and how many of them between two records; the second divides the first. Zero steps are none.
    observe
        A pure function of the parameters. It sees all of them, also those that are not trained.
    trainable
        What to train: a tree of booleans in the structure of the parameters or a prefix of it, or a function of a
        leaf. By default all floating arrays. The remaining leaves stay as they are.
    throw
        Whether to raise for a loss that is not finite; otherwise ``result`` tells.
    key
        For online training.

    Raises
    ------
    ValueError
        For a negative number of steps, an interval below one that does not divide them, nothing to train, a gradient
        without an entry for something that is trained, and a loss that is not finite.

    >>> import optax
    >>> square = lambda x: (x**2 / 2, x)
    >>> run = descend(square, jnp.array(1.0), optax.sgd(0.5), steps=4, observe=jnp.square, record_every=2)
    >>> float(run.parameters), run.losses.tolist(), run.recorded_steps.tolist(), run.records.tolist()
    (0.0625, [0.5, 0.125, 0.03125, 0.0078125], [0, 2, 4], [1.0, 0.0625, 0.00390625])
    """
    if steps < 0 or record_every < 1 or steps % record_every:
        raise ValueError(
            f"descend takes steps of at least 0 and records every so many of them; got steps={steps} and "
            f"record_every={record_every}. Choose a number of steps that is a multiple of record_every."
        )
    if not jax.tree.leaves(eqx.filter(parameters, trainable)):
        raise ValueError("There is nothing to train: 'trainable' selects no leaf of the parameters.")
    run = _run(value_and_gradient, parameters, optimizer, steps, observe, record_every, trainable, key)
    return raise_failures(run, run.result, of="steps") if throw else run


@eqx.filter_jit
def _run(value_and_gradient, parameters, optimizer, steps, observe, record_every, trainable, key) -> Descent:
    varied, fixed = eqx.partition(parameters, trainable)
    look: Callable[[Any], Any] = (lambda _: None) if observe is None else observe

    def step(carry, number):
        varied, state = carry
        whole = eqx.combine(varied, fixed)
        if key is None:
            loss, gradient = value_and_gradient(whole)
        else:
            loss, gradient = value_and_gradient(whole, key=jax.random.fold_in(key, number))
        gradient = _matching(eqx.filter(gradient, trainable), varied)
        with jax.numpy_dtype_promotion("standard"):
            updates, state = optimizer.update(gradient, state, varied)
            varied = optax.apply_updates(varied, updates)
        return (varied, state), loss

    def block(carry, numbers):
        record = look(eqx.combine(carry[0], fixed))
        carry, losses = jax.lax.scan(step, carry, numbers)
        return carry, (record, losses)

    with jax.numpy_dtype_promotion("standard"):
        state = optimizer.init(varied)
    numbers = jnp.arange(steps, dtype=jnp.int32).reshape(steps // record_every, record_every)
    (varied, _), (records, losses) = jax.lax.scan(block, (varied, state), numbers)
    final = eqx.combine(varied, fixed)
    records = jax.tree.map(lambda stack, last: jnp.concatenate([stack, jnp.asarray(last)[None]]), records, look(final))
    losses = losses.reshape(steps)
    return Descent(
        parameters=final,
        losses=losses,
        recorded_steps=jnp.arange(0, steps + 1, record_every, dtype=jnp.int32),
        records=records,
        result=first_failure((~jnp.isfinite(losses), RESULTS.not_finite)),
    )


def _matching(gradient, varied):
    expected, found = (partial(jax.tree.map, lambda leaf: leaf.shape)(tree) for tree in (varied, gradient))
    if jax.tree.structure(varied) != jax.tree.structure(gradient) or expected != found:
        raise ValueError(
            f"The gradient has an entry for every leaf that is trained, of its shape: {expected}; got {found}. "
            "Differentiate with respect to all of them, or mark what is not trained by 'trainable'."
        )
    return gradient

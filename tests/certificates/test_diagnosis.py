"""A diagnosis names the cause that was built in, and its parts are risks of runs made by hand."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxsolve.certificates import (
    DiagnosedTasks,
    Diagnosis,
    best_free_preconditioner,
    diagnose,
    prompted_diffusion,
)
from jaxsolve.preconditioners import FreeLinear, Jacobi, SoftmaxAttention, position_tokens
from jaxsolve.solver import pretrain

SIZE, DEPTH = 8, 4


def tasks(count, seed, noise=0.0):
    """Tasks whose prompts are the estimates themselves."""
    found = prompted_diffusion(count, size=SIZE, prompt_size=4, noise=noise, generator=np.random.default_rng(seed))
    operators, estimates, solutions = (jnp.asarray(array) for array in found[:3])
    return DiagnosedTasks(operators, solutions, estimates)


TRAINING, FRESH = tasks(256, 0), tasks(512, 1)
EXACT, NOISY = tasks(128, 2), tasks(128, 2, noise=0.6)


def read(prompts):
    return prompts


@cache
def best(depth):
    return best_free_preconditioner(FRESH.operators, FRESH.solutions, depth=depth, steps=150)


def overfitted():
    few = TRAINING.operators[:2], TRAINING.solutions[:2]
    sides = jnp.einsum("tij,tj->ti", *few)
    start = FreeLinear.initialise(SIZE)
    run = pretrain(start, few[0], sides, 0 * sides, few[1], depth=DEPTH, optimizer=optax.adam(3e-2), steps=300)
    return run.parameters, DiagnosedTasks(*few)


def situation(cause):
    if cause == "prompt":
        return best(DEPTH), TRAINING, NOISY, DEPTH
    if cause == "pretraining tasks":
        return *overfitted(), EXACT, DEPTH
    if cause == "architecture":
        return FreeLinear.initialise(SIZE), TRAINING, EXACT, DEPTH
    return best(1), TRAINING, EXACT, 1


@pytest.mark.parametrize("cause", Diagnosis.causes)
def test_each_cause_is_named_where_it_was_built_in(cause):
    preconditioner, training, held_out, depth = situation(cause)
    found = diagnose(preconditioner, read, training, held_out, best(depth), depth=depth)
    assert found.dominant == cause
    assert found.clear
    assert float(found.shares.max()) > 0.5
    assert float(found.parts.sum() + found.remainder) == pytest.approx(float(found.total), rel=1e-12)


def test_the_parts_are_differences_of_runs_by_hand():
    model = FreeLinear(0.9 * best(DEPTH).entries)

    def risk(matrix, operators, given, depth):
        iterate = np.zeros_like(given.solutions)
        sides = np.einsum("tij,tj->ti", given.operators, given.solutions)
        for _ in range(depth):
            iterate = iterate + (sides - np.einsum("tij,tj->ti", operators, iterate)) @ np.asarray(matrix).T
        return ((iterate - np.asarray(given.solutions)) ** 2).mean()

    found = diagnose(model, read, TRAINING, NOISY, best(DEPTH), depth=DEPTH, converged_depth=9)
    chain = [
        risk(model.entries, NOISY.prompts, NOISY, DEPTH),
        risk(model.entries, NOISY.operators, NOISY, DEPTH),
        risk(model.entries, TRAINING.operators, TRAINING, DEPTH),
        risk(best(DEPTH).entries, TRAINING.operators, TRAINING, DEPTH),
        min(risk(best(DEPTH).entries, TRAINING.operators, TRAINING, depth) for depth in range(DEPTH, 10)),
    ]
    np.testing.assert_allclose(found.parts, -np.diff(chain), rtol=1e-10, atol=1e-16)
    assert float(found.remainder) == pytest.approx(chain[-1], rel=1e-10)
    assert DEPTH <= int(found.converged_depth) <= 9


def test_any_encoder_and_preconditioner_will_do():
    """Classical and attention preconditioners, a function, and an encoder of its own prompts."""
    attention = SoftmaxAttention.initialise(position_tokens(SIZE), heads=2, key=jax.random.key(0))
    averaged = EXACT._replace(prompts={"pair": (EXACT.operators, NOISY.prompts)})

    def encoder(prompts):
        return sum(prompts["pair"]) / 2

    for model in (attention, Jacobi(jnp.array(0.9)), jnp.linalg.inv):
        found = diagnose(model, encoder, TRAINING, averaged, best(DEPTH), depth=DEPTH)
        assert np.isfinite(found.parts).all()
    assert found.dominant == "prompt"  # the inverse of every estimate: nothing else is at fault
    assert float(found.total) == pytest.approx(float(found.parts[0]), rel=1e-6)


def test_equal_causes_are_not_clear():
    found = diagnose(best(DEPTH), read, TRAINING, EXACT, best(DEPTH), depth=DEPTH)
    doubled = Diagnosis(
        total=found.total,
        parts=jnp.array([1.0, 0.95, 0.0, 0.0]),
        standard_errors=jnp.array([0.1, 0.1, 0.1, 0.1]),
        remainder=found.remainder,
        converged_depth=found.converged_depth,
        result=found.result,
    )
    assert doubled.dominant == "prompt"
    assert not doubled.clear


def test_a_run_that_diverges_is_told():
    wild = FreeLinear(1e160 * jnp.eye(SIZE))
    with pytest.raises(ValueError, match="NaN or infinite"):
        diagnose(wild, read, TRAINING, EXACT, best(DEPTH), depth=DEPTH)
    assert not np.isfinite(diagnose(wild, read, TRAINING, EXACT, best(DEPTH), depth=DEPTH, throw=False).total)


def test_bad_input_is_refused(unchecked):
    with pytest.raises(ValueError, match="depth of at least 1"):
        diagnose(best(DEPTH), read, TRAINING, EXACT, best(DEPTH), depth=0)
    with pytest.raises(ValueError, match="converged_depth=2"):
        diagnose(best(DEPTH), read, TRAINING, EXACT, best(DEPTH), depth=DEPTH, converged_depth=2)
    with pytest.raises(ValueError, match="one operator per held-out task"):
        diagnose(best(DEPTH), lambda prompts: prompts[:3], TRAINING, EXACT, best(DEPTH), depth=DEPTH)

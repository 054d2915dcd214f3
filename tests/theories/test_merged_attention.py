"""Merged attention as a linear network: what the symmetry of the prompts is for, and what is found."""

import equinox as eqx
import jax
import numpy as np
import pytest

from jaxsolve.evidence import Result, evaluate, judge
from jaxsolve.theories.merged_attention import MergedAttention

QUICK = MergedAttention.quick()
KEY = jax.random.key(0)
MEASURED = QUICK.simulate(QUICK.grid(), key=KEY)
SIZE, HEADS = 4, 3


def zero_blocks(weights):
    """The entries of values and merged matrices that start at zero, of the observable ``weights``."""
    return np.concatenate([weights[..., :SIZE], weights[..., -SIZE:]], axis=-1)


def test_training_lowers_the_loss_and_moves_the_weights():
    outputs, weights = (np.asarray(MEASURED[name].value)[0] for name in ("output", "weights"))
    losses = np.mean((outputs - np.asarray(QUICK.targets)) ** 2, axis=1)
    assert losses[-1] < 0.2 * losses[0]
    assert np.linalg.norm(weights[-1] - weights[0]) > 0.2 * np.linalg.norm(weights[0])
    assert weights.shape == (151, HEADS, SIZE + 1 + SIZE * (SIZE + 1))


def test_zero_blocks_stay_at_rounding():
    assert np.abs(zero_blocks(np.asarray(MEASURED["weights"].value))).max() < 1e-15


def test_zero_blocks_move_where_labels_have_one_sign():
    half = len(QUICK.targets) // 2
    one_sign = eqx.tree_at(lambda one: (one.tokens, one.targets), QUICK, (QUICK.tokens[:half], QUICK.targets[:half]))
    weights = np.asarray(one_sign.sample(one_sign.grid(), key=KEY)["weights"].value)
    assert np.abs(zero_blocks(weights)).max() > 1e-2
    assert evaluate(one_sign, key=KEY).verdicts["weights"].result is Result.DISAGREES


def test_the_output_at_the_start_needs_no_symmetry():
    half = len(QUICK.targets) // 2
    start = eqx.tree_at(lambda one: (one.tokens, one.targets), QUICK, (QUICK.tokens[:half], QUICK.targets[:half]))
    predicted, measured = start.predict(start.grid()), start.sample(start.grid(), key=KEY)
    np.testing.assert_allclose(measured["output"].value[0], predicted["output"].value[0], rtol=0, atol=1e-14)


@pytest.mark.parametrize("options", [{"heads": 1}, {"size": 2, "examples": 5}, {"instance_seed": 1, "pairs": 8}])
def test_holds_in_other_configurations(options):
    for verdict in evaluate(MergedAttention.quick(**options), key=KEY).verdicts.values():
        assert verdict.result is Result.AGREES


@pytest.mark.parametrize("name", ["learning_rate", "targets", "examples"])
def test_an_ingredient_off_by_a_millionth_is_found(name):
    wrong = eqx.tree_at(lambda one: getattr(one, name), QUICK, (1 + 1e-6) * getattr(QUICK, name))
    found = judge(wrong, QUICK.grid(), wrong.predict(QUICK.grid()), MEASURED).verdicts
    assert all(verdict.result is Result.DISAGREES for verdict in found.values())


def test_a_single_prompt_by_hand():
    """The output from its definition as sums over examples, heads and coordinates."""
    tokens, values, merged = (np.asarray(array) for array in (QUICK.tokens[5], QUICK.values, QUICK.merged))
    examples = tokens.shape[1] - 1
    expected = sum(
        values[h, SIZE, SIZE] * tokens[SIZE, n] * tokens[:SIZE, n] @ merged[h, :SIZE, :SIZE] @ tokens[:SIZE, -1]
        for h in range(HEADS)
        for n in range(examples)
    )
    assert float(MEASURED["output"].value[0, 0, 5]) == pytest.approx(expected / examples, rel=1e-12)

"""The alignment law: its two ways of drawing, and what its test can see."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from jaxsolve.evidence import Result, evaluate, judge
from jaxsolve.theories.alignment_law import AlignmentLaw

KEY = jax.random.key(1)


def test_the_plane_draws_what_gaussian_vectors_have():
    """Two samples, at dimensions where explicit vectors are cheap; six comparisons at a common level of 1e-3."""
    dimensions = np.array([3, 4, 7, 16, 64, 300])
    theory = eqx.tree_at(lambda theory: theory.dimensions, AlignmentLaw.quick(), jnp.asarray(dimensions, float))
    drawn = np.asarray(theory.simulate(theory.grid(), key=KEY, replicates=20)["squared_cosine"].values)
    assert drawn.shape == (20_000, 6)
    generator = np.random.default_rng(0)
    for column, dimension in zip(drawn.T, dimensions, strict=True):
        first, second = generator.standard_normal((2, 20_000, dimension))
        cosine = (first * second).sum(axis=1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
        assert scipy.stats.ks_2samp(column, cosine**2).pvalue > 1e-3 / 6
        assert scipy.stats.ks_2samp(column, 0.8 * cosine**2).pvalue < 1e-6


def test_matrices_follow_the_law_they_were_not_drawn_from():
    full = AlignmentLaw.full()
    assert full.batch * full.replicates == 100_000
    verdict = evaluate(full, key=KEY, replicates=20).verdicts["squared_cosine"]
    assert verdict.result is Result.INCONCLUSIVE  # two thousand draws agree, and resolve five percent
    assert verdict.discrepancy < verdict.resolution < 0.06


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_quick_draws_a_hundred_thousand_and_sees_ten_percent(dtype):
    theory = AlignmentLaw.quick(dtype=dtype)
    evaluation = evaluate(theory, key=KEY)
    pair, verdict = evaluation.pairs["squared_cosine"], evaluation.verdicts["squared_cosine"]
    assert pair.measured.values.shape == (100_000, 7)
    assert verdict.result is Result.AGREES
    fake = judge(
        theory, evaluation.grid, theory.counterfeit().predict(evaluation.grid), {"squared_cosine": pair.measured}
    )
    assert fake.verdicts["squared_cosine"].result is Result.DISAGREES
    assert fake.verdicts["squared_cosine"].discrepancy > 2 * theory.effect


def test_the_grid_holds_the_dimensions_of_the_source():
    assert AlignmentLaw.quick().grid().tolist() == [64, 128, 256, 512, 1024, 2048, 4096]

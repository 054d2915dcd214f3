"""Small situations from public bug reports: a case passes, or declines for a capability listed as not built."""

import re

import numpy as np
import pytest

from . import cases
from .adapter import NOT_BUILT, Adapter

EXPECTED = cases.load_expected()


@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: case["id"])
def test_case(case):
    try:
        findings = case["check"](Adapter(), case["build"](), EXPECTED.get(case["id"], {}))
    except NotImplementedError as declined:
        if str(declined) not in NOT_BUILT.values():
            raise
        findings = []
    assert not [finding for finding in findings if not finding[1]]


def test_draws_of_the_initial_erosion_average_to_the_hidden_share():
    """The cases have no check of this method. Its mean over feedback matrices is 1 − ‖g_L‖² / Σ_l ‖g_l‖²."""
    widths, adapter = (6, 16, 12, 3), Adapter()
    weights, inputs, residual = cases.mlp_weights(1, widths), cases.normals(2, 20, 6), cases.normals(3, 20, 3)
    sigmas = ((2 / 16) ** 0.5, (1 / 12) ** 0.5)
    several = [adapter.e0_draws(weights, inputs, residual, sigmas, 2000, 7, chunk) for chunk in (None, 1, 50)]
    squares = [
        np.sum(np.asarray(g) ** 2)
        for g in adapter.fa_grads(weights, _transposes(weights), inputs, residual, "relu", "fa")
    ]
    share = 1 - squares[-1] / sum(squares)
    assert abs(several[0].mean() - share) < 4 * several[0].std() / 2000**0.5
    assert 0.1 < several[0].std() / share < 10
    assert all(np.array_equal(other, several[0]) for other in several[1:])


def _transposes(weights):
    return [weight.T for weight in weights[1:]]


def test_every_method_is_built_or_listed():
    methods = set(re.findall(r"^ (\w+)\(", cases.ADAPTER_DOC, re.MULTILINE))
    built = {name for name in vars(Adapter) if not name.startswith("_")}
    assert methods == built | set(NOT_BUILT)
    assert not built & set(NOT_BUILT)

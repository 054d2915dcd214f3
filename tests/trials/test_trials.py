"""Small situations from public bug reports: a case passes, or declines for a capability listed as not built."""

import re

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


def test_every_method_is_built_or_listed():
    methods = set(re.findall(r"^ (\w+)\(", cases.ADAPTER_DOC, re.MULTILINE))
    built = {name for name in vars(Adapter) if not name.startswith("_")}
    assert methods == built | set(NOT_BUILT)
    assert not built & set(NOT_BUILT)

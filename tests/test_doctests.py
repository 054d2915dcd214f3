"""The examples in the docstrings run."""

import doctest
import importlib
import pkgutil

import pytest

import jaxsolve

MODULES = [
    info.name for info in pkgutil.walk_packages(jaxsolve.__path__, "jaxsolve.") if not info.name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0

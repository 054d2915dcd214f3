import pytest

from jaxsolve.claims import Discrepancy


@pytest.fixture
def reading():
    return Discrepancy()

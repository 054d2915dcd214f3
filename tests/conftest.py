"""Every test runs in 64-bit mode, with strict promotion and checked array types."""

import importlib
import os
from pathlib import Path

# Before NumPy and matplotlib are loaded: threads of BLAS and workers of pytest would fight for the same cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
# Shared by the workers of pytest, by the processes that tests start, and by the next run.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")

import jax
import jaxtyping
import pytest

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

# Loaded before the hook: annotations of commands are typer's to read. The rooms that it uses are loaded later.
importlib.import_module("jaxsolve.cli")
_hook = jaxtyping.install_import_hook("jaxsolve", "beartype.beartype")
_hook.__enter__()


@pytest.fixture(scope="module", autouse=True)
def _programs_of_one_file_at_a_time():
    """Programs of a finished file are let go: they take memory, and a process maps no more than some ten thousand."""
    yield
    jax.clear_caches()


@pytest.fixture
def unchecked():
    """Without the checks of array types, which users do not have: our own messages show."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(autouse=True)
def _standard_promotion_for_optax(request):
    """Optimizers of Optax promote implicitly: tests marked ``optax`` call them without strict promotion."""
    if request.node.get_closest_marker("optax") is None:
        yield
    else:
        with jax.numpy_dtype_promotion("standard"):
            yield

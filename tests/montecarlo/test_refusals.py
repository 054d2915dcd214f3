"""What is refused, what is counted, and what a checkpoint is good for."""

import os
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve import monte_carlo
from jaxsolve._montecarlo._program import Program, check_platform

KEY = jax.random.key(3)


def uniform(*, key):
    return jax.random.uniform(key, (2,))


def often_broken(*, key):
    """One draw in eight is NaN in one entry, one in eight infinite in the other."""
    drawn = jax.random.uniform(key, (2,))
    return jnp.where(drawn < 0.125, jnp.array([jnp.nan, jnp.inf]), drawn)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": 0}, "count from 1"),
        ({"count": 2**31 + 1}, "count from 1"),
        ({"block": 0}, "block"),
        ({"chunk": 0}, "chunk"),
        ({"standard_error": 0.0}, "positive"),
        ({"standard_error": float("nan")}, "positive"),
        ({"key": jnp.zeros(2, jnp.uint32)}, r"one typed key; got dtype uint32.*jax\.random\.key"),
        ({"key": 0}, "one typed key; got int"),
        ({"key": jax.random.split(jax.random.key(0))}, r"shape \(2,\)"),
        ({"edges": np.array([1.0, 1.0])}, "increase"),
        ({"edges": np.array([1.0, np.nan])}, "finite"),
        ({"edges": np.zeros((2, 2))}, "one row"),
        ({"memory": 100}, "MiB"),
        ({"function": lambda key: jnp.zeros(2, complex)}, "complex128.*two arrays"),
        ({"function": lambda key: (jnp.zeros(2), "text")}, "'text'"),
        ({"function": lambda key: key}, "array of key"),
        ({"function": lambda key: ()}, "at least one number"),
        ({"function": lambda key: jnp.nonzero(jax.random.normal(key, (3,)) > 0)[0]}, "drawn values"),
        ({"function": lambda key: jnp.ones(1) if jax.random.uniform(key) > 0.5 else jnp.ones(2)}, "drawn values"),
    ],
)
def test_bad_input_is_refused(arguments, message, unchecked):
    arguments = {"function": uniform, "key": KEY, "count": 10, **arguments}
    with pytest.raises(ValueError, match=message):
        monte_carlo(**arguments)


def test_a_function_with_a_memory_is_refused():
    seen = []

    def growing(*, key):
        seen.append(None)
        return jnp.zeros(len(seen))

    with pytest.raises(ValueError, match=r"\(1,\).*\(2,\).*pure"):
        monte_carlo(growing, KEY, 10)


def test_double_precision_on_a_tpu_is_refused():
    with pytest.raises(ValueError, match="no float64"):
        check_platform("tpu", np.dtype("float64"))
    check_platform("tpu", np.dtype("float32"))
    check_platform("cpu", np.dtype("float64"))


def test_draws_that_are_not_finite_are_never_averaged():
    with pytest.raises(ValueError, match=r"NaN or infinite.*fold_in.*Failed: 1 of 8 draws, first 7\."):
        monte_carlo(often_broken, KEY, 1000)
    found = monte_carlo(often_broken, KEY, 1000, throw=False, keep=True)
    finite = np.isfinite(found.values).all(axis=1)
    assert found.failed == found.count - found.finite == 1000 - finite.sum()
    assert abs(found.failed - 1000 * (1 - 0.875**2)) < 4 * np.sqrt(1000 * 0.18)
    assert list(found.failed_draws) == np.flatnonzero(~finite)[:16].tolist()
    assert np.allclose(found.mean, found.values[finite].mean(axis=0), rtol=1e-14)
    assert np.allclose(found.variance, found.values[finite].var(axis=0, ddof=1), rtol=1e-12)
    assert np.array_equal(found.maximum, found.values[finite].max(axis=0))


def test_nothing_finite_is_nothing():
    with pytest.raises(ValueError, match="None of 9 draws"):
        monte_carlo(lambda key: jnp.array(jnp.nan), KEY, 9, throw=False)


def test_a_block_that_exceeds_the_memory_is_told_with_numbers():
    with pytest.raises(ValueError, match=r"8 draws of 3000 numbers needs .* MiB.*smaller block"):
        monte_carlo(lambda key: jnp.ones(3000), KEY, 100, covariance=True, memory=2**20)


def test_memory_bounds_the_chunk_and_changes_no_bit(capfd):
    found = [monte_carlo(uniform, KEY, 4000, memory=memory) for memory in (2**14, 2**28)]
    assert np.array_equal(found[0].mean, found[1].mean)
    assert np.array_equal(found[0].variance, found[1].variance)
    monte_carlo(uniform, KEY, 4000, memory=2**14, progress=True)
    told = " ".join(capfd.readouterr().err.split())
    assert "4000 draws of 2 numbers in blocks of 8, on 1 cpu device: at most 0.0" in told
    assert "no checkpoint" in told
    assert "4000/4000" in told


def test_a_full_disk_is_noticed_before_the_work(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 10, 1))  # pyright: ignore
    with pytest.raises(ValueError, match=r"MiB free"):
        monte_carlo(uniform, KEY, 100, checkpoint=tmp_path / "run.npz")


def test_a_checkpoint_of_another_run_is_refused_and_the_difference_named(tmp_path):
    file = tmp_path / "run.npz"
    monte_carlo(uniform, KEY, 100, checkpoint=file)
    other = {
        "block": {"block": 4},
        "key": {"key": jax.random.key(4)},
        "program": {"function": lambda key: jax.random.uniform(key, (2,)) * 2},
        "covariance": {"covariance": True},
        "edges": {"edges": np.array([0.5])},
        "keep": {"keep": True},
        "100 draws": {"count": 200},  # the last block held four of them
        "50": {"count": 50},
        "standard error": {"standard_error": 0.5},
    }
    for name, changes in other.items():
        arguments = {"function": uniform, "key": KEY, "count": 100, **changes}
        with pytest.raises(ValueError, match=f"another run: .*{name}"):
            monte_carlo(**arguments, checkpoint=file)
    before = os.stat(file).st_mtime_ns
    assert monte_carlo(uniform, KEY, 100, checkpoint=file).count == 100
    assert os.stat(file).st_mtime_ns == before


def test_arrays_that_a_function_holds_belong_to_the_run(tmp_path):
    def scaled(scale):
        return jax.tree_util.Partial(lambda scale, *, key: scale * jax.random.uniform(key, (2,)), jnp.array(scale))

    monte_carlo(scaled(1.0), KEY, 8, checkpoint=tmp_path / "run.npz")
    with pytest.raises(ValueError, match="arrays is"):
        monte_carlo(scaled(2.0), KEY, 8, checkpoint=tmp_path / "run.npz")


def test_a_finished_run_goes_on_to_more_draws_and_to_a_smaller_error(tmp_path):
    monte_carlo(uniform, KEY, 96, checkpoint=tmp_path / "run.npz")
    longer = monte_carlo(uniform, KEY, 203, checkpoint=tmp_path / "run.npz")
    assert np.array_equal(longer.variance, monte_carlo(uniform, KEY, 203).variance)
    for error in (0.03, 0.01):
        found = monte_carlo(uniform, KEY, 10**5, standard_error=error, checkpoint=tmp_path / "stop.npz")
        fresh = monte_carlo(uniform, KEY, 10**5, standard_error=error)
        assert found.count == fresh.count < 10**5
        assert np.array_equal(found.variance, fresh.variance)


def test_a_broken_run_is_kept_and_can_be_taken_up(tmp_path):
    file = tmp_path / "run.npz"
    with pytest.raises(ValueError, match="Failed"):
        monte_carlo(often_broken, KEY, 100, checkpoint=file)
    with pytest.raises(ValueError, match="Failed"):
        monte_carlo(often_broken, KEY, 100, checkpoint=file)
    found = monte_carlo(often_broken, KEY, 100, checkpoint=file, throw=False)
    assert np.array_equal(found.mean, monte_carlo(often_broken, KEY, 100, throw=False).mean)


def test_an_interrupted_run_keeps_what_it_has(tmp_path, monkeypatch):
    honest, calls = Program.run, []

    def interrupted(self, start, blocks, count):
        calls.append(blocks)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return honest(self, start, blocks, count)

    monkeypatch.setattr(Program, "run", interrupted)
    options = {"checkpoint": tmp_path / "run.npz", "chunk": 1}
    with pytest.raises(KeyboardInterrupt):
        monte_carlo(uniform, KEY, 203, **options)
    found = monte_carlo(uniform, KEY, 203, **options)
    assert len(calls) == 3 + 24  # two of 26 blocks were there
    assert np.array_equal(found.variance, monte_carlo(uniform, KEY, 203).variance)


@pytest.mark.parametrize("damage", [lambda content: content[: len(content) // 2], lambda content: b"text"])
def test_a_damaged_checkpoint_is_refused(tmp_path, damage):
    file = tmp_path / "run.npz"
    monte_carlo(uniform, KEY, 100, checkpoint=file)
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(ValueError, match=r"run\.npz cannot be read.*remove it"):
        monte_carlo(uniform, KEY, 100, checkpoint=file)


@pytest.mark.accelerator
@pytest.mark.skipif(jax.default_backend() == "cpu", reason="needs a GPU or a TPU")
def test_an_accelerator_agrees():
    """float32 to 1e-5; the same draws, so no statistics are involved."""

    def single(*, key):
        drawn = jax.random.normal(key, (64,), "float32")
        return jnp.tanh(jnp.matmul(drawn.reshape(8, 8), drawn.reshape(8, 8).T, precision="highest"))

    meshes = [jax.sharding.Mesh(np.array(jax.devices(platform)), ("draws",)) for platform in (None, "cpu")]
    found, expected = (monte_carlo(single, KEY, 1003, mesh=mesh, keep=True) for mesh in meshes)
    for name in ("mean", "variance", "values"):
        assert np.allclose(getattr(found, name), getattr(expected, name), rtol=1e-5, atol=1e-5)

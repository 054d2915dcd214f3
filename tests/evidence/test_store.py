"""Evidence survives a round trip through its file; a damaged file is named."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.evidence import Curve, Law, Pair, Samples, kolmogorov_smirnov, load_evidence, save_evidence


def uniform_cdf(values):
    return jnp.clip(values, 0, 1)


@pytest.fixture
def pairs():
    grid = jnp.array([1.0, 2.0])
    curve = Pair(Curve(grid, jnp.ones((2, 3))), Curve(grid, jnp.zeros((4, 2, 3)), None))
    mean = Pair(Curve(grid, jnp.ones(2)), Curve(grid, jnp.zeros(2), jnp.ones(2)))
    law = Law(eqx.Partial(uniform_cdf), jnp.full(2, 0.5), jnp.full(2, 1 / 12))
    samples = Samples(jax.random.uniform(jax.random.key(0), (5000, 2)))
    return {"curve": curve, "mean": mean, "law": Pair(law, samples)}


def test_round_trip(tmp_path, pairs):
    save_evidence(tmp_path / "deep" / "e.npz", np.array([1.0, 2.0]), pairs)
    grid, loaded = load_evidence(tmp_path / "deep" / "e.npz")
    assert grid.tolist() == [1.0, 2.0]
    assert eqx.tree_equal(loaded["curve"], pairs["curve"])
    assert eqx.tree_equal(loaded["mean"], pairs["mean"])
    assert np.array_equal(loaded["law"].measured.values, pairs["law"].measured.values)
    before, after = kolmogorov_smirnov(pairs["law"]), kolmogorov_smirnov(loaded["law"])
    assert np.allclose(before, after, atol=2e-3)


def test_bytes_depend_on_the_content_alone(tmp_path, pairs):
    grid = np.array([1.0, 2.0])
    assert save_evidence(tmp_path / "a.npz", grid, pairs) == save_evidence(tmp_path / "b.npz", grid, pairs)
    assert save_evidence(tmp_path / "c.npz", 2 * grid, pairs) != save_evidence(tmp_path / "b.npz", grid, pairs)


@pytest.mark.parametrize("damage", [lambda raw: raw[: len(raw) // 2], lambda raw: b"rubbish", lambda raw: b""])
def test_a_damaged_file_is_named(tmp_path, pairs, damage):
    path = tmp_path / "e.npz"
    save_evidence(path, np.array([1.0, 2.0]), pairs)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=r"e\.npz"):
        load_evidence(path)


def test_a_failed_write_leaves_the_old_file(tmp_path, pairs, monkeypatch):
    path = tmp_path / "e.npz"
    digest = save_evidence(path, np.array([1.0, 2.0]), pairs)
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        save_evidence(path, np.array([9.0]), pairs)
    from jaxsolve._files import sha256

    assert sha256(path) == digest
    assert [p.name for p in tmp_path.iterdir()] == ["e.npz"]

"""The digits and their labels."""

from importlib import resources

import jax.numpy as jnp
import numpy as np
import pytest

from jaxsolve.datasets import digits, one_hot


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_rows_have_unit_norm(dtype):
    images, labels = digits(50, start=7, dtype=dtype)
    assert images.dtype == dtype
    assert jnp.issubdtype(labels.dtype, jnp.integer)
    assert float(jnp.abs(jnp.linalg.norm(images, axis=1) - 1).max()) <= 4 * jnp.finfo(dtype).eps


def test_intensities_are_eight_bit_numbers():
    levels = np.asarray(digits(300, scaling="unit_interval").images) * 255
    assert np.abs(levels - np.rint(levels)).max() <= 1e-12
    assert levels.min() == 0
    assert levels.max() == 255


def test_standardised_pixels_have_mean_zero_and_variance_one():
    images = digits(4096, scaling="standardised").images
    assert abs(float(images.mean())) <= 1e-12
    assert abs(float(images.std()) - 1) <= 1e-12


@pytest.mark.parametrize("scaling", ["unit_rows", "unit_interval", "standardised"])
def test_a_range_does_not_depend_on_its_neighbours(scaling):
    whole, part = digits(20, start=100, scaling=scaling), digits(5, start=110, scaling=scaling)
    assert np.array_equal(whole.images[10:15], part.images)
    assert np.array_equal(whole.labels[10:15], part.labels)


def test_a_linear_classifier_reads_the_labels():
    train, test = digits(3072), digits(1024, start=3072)
    gram = train.images.T @ train.images + 0.1 * jnp.eye(784)
    weights = jnp.linalg.solve(gram, train.images.T @ one_hot(train.labels))
    accuracy = float(jnp.mean(jnp.argmax(test.images @ weights, axis=1) == test.labels))
    assert 0.8 < accuracy < 0.95


@pytest.mark.parametrize(("count", "start"), [(0, 0), (4097, 0), (1, 4096), (3, -1)])
def test_a_range_outside_the_digits_is_refused(count, start):
    with pytest.raises(ValueError, match="4096 digits"):
        digits(count, start=start)


def test_an_unknown_scaling_or_dtype_is_refused(unchecked):
    with pytest.raises(ValueError, match="'unit_rows', 'unit_interval', 'standardised'; got 'zscore'"):
        digits(2, scaling="zscore")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="int32"):
        digits(2, dtype=jnp.int32)


def test_one_hot_marks_the_label():
    labels = digits(30).labels
    targets = one_hot(labels, dtype=jnp.float32)
    assert targets.dtype == jnp.float32
    assert np.array_equal(jnp.argmax(targets, axis=1), labels)
    assert np.array_equal(targets.sum(axis=1), np.ones(30))


def test_labels_outside_the_classes_are_refused(unchecked):
    for labels in (jnp.array([3, 10]), jnp.array([-1])):
        with pytest.raises(ValueError, match="classes - 1 = 9"):
            one_hot(labels)
    with pytest.raises(ValueError, match="float"):
        one_hot(jnp.array([1.0]))


def test_every_data_file_has_a_notice_and_no_pickle():
    folder = resources.files("jaxsolve.datasets").joinpath("data")
    notice = folder.joinpath("README.md").read_text(encoding="utf-8")
    archives = [file for file in folder.iterdir() if file.name.endswith(".npz")]
    assert len(archives) == 2
    for file in archives:
        assert f"## {file.name}" in notice
        with file.open("rb") as content, np.load(content) as archive:
            assert sum(archive[name].nbytes for name in archive.files) > 0
    for holder in ("PyAMG Developers", "Juan Cazala", "Burges", "Attribution-Share Alike 3.0"):
        assert holder in notice

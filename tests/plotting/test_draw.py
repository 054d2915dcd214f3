"""Every kind draws, says what it shows, and survives what a run may hand it."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.figure import Figure

from jaxsolve.evidence import (
    BoundRule,
    IdentityRule,
    Kind,
    Law,
    LawRule,
    LimitRule,
    LocalRule,
    NullModelRule,
    Pair,
    PopulationRule,
    Samples,
    TransitionRule,
)
from jaxsolve.plotting import COMPARED, Mark, draw_comparison, draw_evidence, to_png

from .example_pairs import Example, curves, examples

EXAMPLES = examples()
NAN = np.nan
FLAT = Law(lambda values: jnp.full_like(values, 0.5), jnp.zeros(2), jnp.ones(2))

HARD = {
    "one grid point": (curves([3], [1.0], [1.0 + 1e-15]), IdentityRule()),
    "all differences zero": (curves([1, 2], [1.0, 2.0], [1.0, 2.0]), IdentityRule()),
    "vanished": (curves([1, 2], [0.0, 0.0], [0.0, 0.0]), IdentityRule()),
    "identity of NaN": (curves([1, 2], [1.0, 2.0], [NAN, 2.0]), IdentityRule()),
    "mean of one point": (curves([3], [1.0], [1.1], [0.1]), PopulationRule()),
    "mean without error": (curves([1, 2], [1.0, 2.0], [1.0, 2.0]), PopulationRule()),
    "mean of NaN": (curves([1, 2], [1.0, 2.0], [NAN, 2.0], [NAN, 0.1]), PopulationRule()),
    "two draws": (Pair(FLAT, Samples(jnp.asarray([[0.0, 1.0], [0.0, 2.0]]))), LawRule()),
    "infinite bound": (curves([1, 2], [np.inf, np.inf], [[1.0, 2.0], [1.0, 3.0]]), BoundRule()),
    "violated by NaN": (curves([1, 2], [1.0, 2.0], [[NAN, 2.5], [0.1, 0.2]]), BoundRule()),
    "signed bound": (curves([1, 2], [-1.0, 2.0], [-2.0, 1.0]), BoundRule()),
    "local without error": (curves([0, 1, 2], [0.0, 1.0, 2.0], [0.0, 1.0, 2.0]), LocalRule(0.1, 1.0)),
    "zero error": (curves([1, 2, 3], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]), LimitRule(-1.0, 0.1)),
    "location without error": (curves([1, 2], [[0.0, 1.0], [1.0, 2.0]], [0.5, 3.0]), TransitionRule()),
    "negative null model": (curves([1, 2], [-1.0, 2.0], [1.0, 0.0]), NullModelRule(2.0)),
}


def drawn(pair, kind, **options):
    """Both pictures of a pair, rendered; no warning may come up."""
    figure = Figure()
    axes = np.atleast_1d(figure.subplots(1, 2 if kind in COMPARED else 1))
    marks = options.pop("quoted", ())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_evidence(axes[0], pair, kind=kind, title="loss: agrees", value_name="loss", quoted=marks, **options)
        if kind in COMPARED:
            draw_comparison(axes[1], pair, kind=kind, title="compared", **options)
        assert to_png(figure).startswith(b"\x89PNG")
    return axes


def labels(axis) -> list[str]:
    """What the legend of an axis says."""
    return [text.get_text() for text in axis.get_legend().get_texts()]


@pytest.mark.parametrize("with_rule", [True, False])
@pytest.mark.parametrize("name", EXAMPLES)
def test_every_kind_has_labels_a_legend_and_a_title(name, with_rule):
    example: Example = EXAMPLES[name]
    rule = example.rule if with_rule else None
    axes = drawn(example.pair, example.rule.kind, grid=example.grid, grid_name="depth", rule=rule)
    for axis in axes:
        assert axis.get_xlabel()
        assert axis.get_ylabel()
        assert axis.get_title(loc="left")
        assert len(labels(axis)) == len(set(labels(axis))) >= 1
    assert {"loss", "depth"} & {axes[0].get_xlabel(), axes[0].get_ylabel()}


def test_the_examples_cover_every_kind():
    assert {example.rule.kind for example in EXAMPLES.values()} == set(Kind)


@pytest.mark.parametrize("name", HARD)
def test_hard_cases_draw(name):
    pair, rule = HARD[name]
    drawn(pair, rule.kind, rule=rule)


def test_zero_differences_stand_at_a_floor_and_say_so():
    example = EXAMPLES["identity"]
    (axis,) = drawn(example.pair, Kind.IDENTITY, rule=example.rule)
    assert any("zero" in label and "floor" in label for label in labels(axis))
    assert all((np.asarray(line.get_ydata()) > 0).all() for line in axis.get_lines())


def test_the_allowed_level_comes_from_the_resolution_where_there_is_no_rule():
    pair = EXAMPLES["identity"].pair
    (axis,) = drawn(pair, Kind.IDENTITY, resolution=32 * 2.0**-52)
    assert any("allowed, 32 machine epsilons" in label for label in labels(axis))


def test_printed_numbers_are_marked_where_they_belong():
    example = EXAMPLES["population"]
    axis = drawn(example.pair, Kind.POPULATION, quoted=[Mark(4.0, 0.3, "printed"), (None, 0.2, "limit")])[0]
    assert {"printed", "limit"} <= set(labels(axis))
    (star,) = (line for line in axis.get_lines() if line.get_marker() == "*")
    assert (star.get_xdata()[0], star.get_ydata()[0]) == (4.0, 0.3)


def test_a_printed_quantile_lands_on_the_distribution_function():
    example = EXAMPLES["law"]
    axis = drawn(example.pair, Kind.LAW, grid=example.grid, quoted=[(64.0, 0.125, "printed")])[0]
    (star,) = (line for line in axis.get_lines() if line.get_marker() == "*")
    assert star.get_ydata()[0] == pytest.approx(0.8413, abs=0.01)


def test_a_panel_shows_few_members_and_says_of_how_many():
    example = EXAMPLES["law"]
    axes = drawn(example.pair, Kind.LAW, grid=example.grid, grid_name="width")
    assert {"4", "4096", "5 of 6 members shown"} <= set(labels(axes[0]))
    assert axes[1].get_legend().get_title().get_text() == "width"
    assert len(axes[1].get_lines()) >= 6


def test_an_averaged_curve_says_so():
    example = EXAMPLES["population_many"]
    assert any("mean of 12 entries" in label for label in labels(drawn(example.pair, Kind.POPULATION)[0]))


def test_a_violation_is_marked():
    pair = curves([1, 2], [1.0, 2.0], [0.5, 2.5])
    assert "violated" in labels(drawn(pair, Kind.BOUND, rule=BoundRule())[1])


@pytest.mark.parametrize("kind", sorted(set(Kind) - COMPARED))
def test_a_comparison_without_a_picture_is_refused(kind):
    with pytest.raises(ValueError, match="draw_evidence"):
        draw_comparison(Figure().subplots(), EXAMPLES["identity"].pair, kind=kind)

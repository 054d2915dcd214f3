"""Figures from the folder of a run."""

import io
from typing import ClassVar

import numpy as np
import pytest
from PIL import Image

from jaxsolve import theories
from jaxsolve.evidence import AbstractRule, AbstractTheory
from jaxsolve.plotting import Mark, draw_claim, draw_group, printed_marks, save_claim_figure, to_png

from .example_pairs import examples
from .example_run import measured, write_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def records(folder):
    return {record["id"]: record for record in write_run(folder)}


def titles(figure) -> list[str]:
    """Titles of the axes of a figure."""
    return [axis.get_title(loc="left") for axis in figure.axes]


@pytest.mark.parametrize("name", examples())
def test_a_group_shows_every_observable_with_its_verdict(records, folder, name):
    figure = draw_group([records[f"doc/{name}/first"]], folder)
    told = [title for title in titles(figure) if title != "what the verdict compares"]
    assert told == ["loss: agrees", "other: read by no row"]
    assert figure.get_suptitle() == f"{name.replace('_', ' ').capitalize()} (default): agrees"
    assert all(axis.get_xlabel() and axis.get_ylabel() and axis.get_legend() for axis in figure.axes)


def test_the_figure_of_a_row_shows_what_it_reads(records, folder):
    assert titles(draw_claim(records["doc/identity/first"], folder)) == ["loss: agrees"]


def test_an_unexpected_verdict_is_told_from_a_known_one(records, folder):
    assert titles(draw_claim(records["doc/limit/odd"], folder))[0] == "loss: inconclusive, unexpected"
    known = {**records["doc/limit/odd"], "expected": {"predicted": "inconclusive", "quoted": None}}
    assert titles(draw_claim(known, folder))[0] == "loss: inconclusive, as expected"


def test_printed_numbers_are_marked_only_where_they_are_values_on_the_grid(records):
    marks = printed_marks([record for record in records.values() if record["config"]], "loss")
    assert [(mark.at, mark.number) for mark in marks] == [(4.0, 0.3), (4.0, 0.05)]
    assert all(isinstance(mark, Mark) for mark in marks)
    assert printed_marks([records["doc/population/printed"]], "other") == []
    shape = measured("law/p", "law", None, reading={"name": "PValue", "at": 4.0}, quoted="0.2")
    assert printed_marks([shape], "loss") == []


def test_a_theory_names_its_grid_and_its_level(records, folder, monkeypatch):
    class Decay(AbstractTheory):
        rule: ClassVar[AbstractRule] = examples()["null_model"].rule

        def grid(self):
            """The depth of the network.

            Counted from one.
            """

    monkeypatch.setattr(theories, "load", {"null_model": Decay}.__getitem__)
    figure = draw_claim(records["doc/null_model/first"], folder)
    assert {axis.get_xlabel() for axis in figure.axes} == {"depth of the network"}
    texts = [text.get_text() for text in figure.axes[1].get_legend().get_texts()]
    assert "declared factor 3" in texts


def test_a_file_is_a_png_that_opens(records, folder, tmp_path):
    path = tmp_path / "claim.png"
    save_claim_figure(folder, records["doc/law/first"], path)
    with Image.open(path) as image:
        assert image.format == "PNG"
        assert image.width > 1000
        colours = np.unique(np.asarray(image.convert("RGB")).reshape(-1, 3), axis=0)
    assert 2 < len(colours) <= 256


def test_one_figure_is_one_file(records, folder):
    one, two = (to_png(draw_claim(records["doc/law/first"], folder)) for _ in range(2))
    assert one == two
    with Image.open(io.BytesIO(one)) as image:
        image.verify()


def test_what_cannot_be_drawn_says_why(records, tmp_path):
    row = records["doc/population/printed"]
    with pytest.raises(ValueError, match=r"is missing\. Run doc/population/default again"):
        draw_claim(row, tmp_path)
    path = tmp_path / row["data"]["file"]
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not evidence")
    with pytest.raises(ValueError, match="damaged or of another run"):
        draw_claim(row, tmp_path)
    with pytest.raises(ValueError, match="was not measured"):
        draw_claim(records["doc/broken/row"], tmp_path)


def test_an_observable_that_is_not_in_the_file_is_named(records, folder):
    row = records["doc/identity/first"]
    renamed = {**row, "config": {**row["config"], "observable": "renamed"}}
    with pytest.raises(ValueError, match="renamed"):
        draw_claim(renamed, folder)

"""The report is whole, safe to open, readable by everyone, and written whatever is missing."""

import base64
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from jaxsolve.claims import Document
from jaxsolve.reproduce import _report, summary, write_report
from jaxsolve.reproduce._report import figures

from ..plotting.example_run import measured, write_run

TITLE = "A document <about> decay"
VOID = {"meta", "img", "br", "wbr", "link", "hr", "input"}
CSS = (Path(_report.__file__).parent / "_report.css").read_text()


class Page(HTMLParser):
    """Reads a page: elements with their attributes, ids, links, and the words of the table heads of rows."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.heads: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attributes = {name: value or "" for name, value in attrs}
        self.elements.append((tag, attributes))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "th" and attributes.get("scope", "").startswith("row"):
            self.heads.append("")
        if tag == "table":
            assert "div" in self.open

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)
        if "th" in self.open and "code" in self.open:
            self.heads[-1] += data

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


@pytest.fixture(autouse=True)
def one_document(monkeypatch):
    monkeypatch.setattr(_report, "documents", lambda: (Document("doc", "009", TITLE, ""),))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def records(folder):
    return write_run(folder)


@pytest.fixture(scope="module")
def source(folder, records):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_report, "documents", lambda: (Document("doc", "009", TITLE, ""),))
        return write_report(folder, records).read_text()


@pytest.fixture(scope="module")
def page(source):
    return Page(source)


def test_every_row_heads_one_row_of_a_table(page, records):
    assert sorted(head for head in page.heads if head) == sorted(record["id"] for record in records)


def test_ids_are_unique_and_every_link_leads_to_one(page):
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = {attributes["href"] for attributes in page.all("a")}
    assert {"#findings", "#unexpected", "#unmeasured", "#doc", "#doc/population/found", "#doc/limit/odd"} <= links
    assert {link.removeprefix("#") for link in links} <= set(ids)
    labels = {attributes["aria-labelledby"] for _, attributes in page.elements if "aria-labelledby" in attributes}
    assert labels <= set(ids)


def test_the_page_needs_no_network_and_no_script(page, source):
    assert not page.all("script")
    assert not page.all("link")
    assert not re.search(r"https?:|@import|url\(|\son\w+=", source)
    assert all(attributes["src"].startswith("data:image/png;base64,") for attributes in page.all("img"))


def test_figures_are_embedded_and_told_in_words(page, folder, records):
    images = page.all("img")
    files = figures(folder, records)
    assert len(images) == len(files) == 10
    embedded = {base64.b64decode(attributes["src"].split(",")[1]) for attributes in images}
    assert embedded == {path.read_bytes() for path in files.values()}
    assert files["doc/law/default"] == folder / "figures" / "doc--law--default.png"
    assert all("loss: " in attributes["alt"] for attributes in images)


def test_text_is_escaped(page, source):
    assert "<script" not in source
    assert "alert(1)" in page.text
    assert TITLE in page.text
    assert "<code>code</code>" in source


def test_tables_are_accessible(page):
    assert page.all("html")[0]["lang"] == "en"
    assert page.all("title")
    assert all(attributes.get("scope") in ("col", "row", "rowgroup") for attributes in page.all("th"))
    regions = [attributes for attributes in page.all("div") if attributes.get("class") == "scroll"]
    assert len(regions) >= len(page.all("table"))
    assert all(attributes["role"] == "region" and attributes["aria-label"] for attributes in regions)


def test_the_top_counts_and_the_unexpected_come_first(page, records):
    text = page.text
    assert summary(records).replace("_", " ") in text
    order = [text.index(words) for words in ("Unexpected verdicts", "How to read", "Contents", "Known findings")]
    assert order == sorted(order)
    assert "expected agrees, found inconclusive" in text
    assert "jaxsolve 0.1.0 · jax 0.10.2 · device cpu:cpu · scale quick · seed 0 · float64" in text


def test_numbers_that_need_the_full_scale_are_told(folder):
    data = {"file": "data/gone.npz", "sha256": ""}
    expected = {"predicted": "agrees", "quoted": "not_run"}
    waiting = measured("law/waits", "law", data, quoted="5", verdict_quoted="not_run", expected=expected)
    page = Page(write_report(folder / "waiting", [waiting]).read_text())
    assert "1 printed numbers compared at full scale only" in page.text
    assert "The printed number is compared at full scale only." in page.text
    assert "agrees; printed not run" in page.text


def test_findings_are_marked_with_their_reason(page, source):
    assert 'class="finding" id="doc/population/found"' in source
    assert page.text.count("The source divides twice.") == 2
    assert "Found: 0.3 against 0.05" in page.text


def test_rows_not_measured_close_the_page(page):
    text = page.text
    assert text.index("retired: 1") > text.index("not attempted: 1") > text.index("doc/limit/odd")
    assert "taken back on page 3" in text
    assert len(page.all("details")) == 2


def test_nothing_is_unexpected_where_all_is_as_expected(tmp_path, records):
    calm = [record for record in records if record["id"] in ("doc/later/open", "doc/later/gone")]
    text = Page(write_report(tmp_path, calm).read_text()).text
    assert "Unexpected verdicts" not in text
    assert "Known findings" not in text


def test_a_run_of_nothing_has_a_report(tmp_path):
    assert "0 agree as expected" in Page(write_report(tmp_path, []).read_text()).text


@pytest.mark.parametrize("harm", ["missing", "damaged", "emptied"])
def test_lost_data_costs_a_figure_and_nothing_else(tmp_path, harm):
    records = write_run(tmp_path)
    path = tmp_path / "data" / "doc" / "population" / "default.npz"
    if harm == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:100] if harm == "damaged" else b"")
    chosen = [record for record in records if record["group"] in ("doc/population/default", "doc/limit/default")]
    page = Page(write_report(tmp_path, chosen).read_text())
    assert len(page.all("img")) == 1
    assert "The figure could not be drawn. data/doc/population/default.npz is" in page.text
    assert sorted(filter(None, page.heads)) == sorted(record["id"] for record in chosen)
    assert list(figures(tmp_path, chosen)) == ["doc/limit/default"]


def test_a_figure_that_breaks_costs_itself_alone(tmp_path, monkeypatch):
    from jaxsolve import plotting

    def broken(*_):
        raise TypeError("no such colour")

    monkeypatch.setattr(plotting, "draw_group", broken)
    records = write_run(tmp_path)[:1]
    assert "TypeError('no such colour')" in Page(write_report(tmp_path, records).read_text()).text


def test_a_broken_theory_is_told_in_place_of_its_figure(page):
    assert page.text.count("the theory broke: ValueError: <none>") == 2


def test_a_second_report_replaces_the_first(tmp_path):
    records = [measured("broken/row", "law", None)]
    first = write_report(tmp_path, []).read_bytes()
    path = write_report(tmp_path, records)
    assert path == tmp_path / "report.html"
    assert path.read_bytes() != first
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def luminance(colour: str) -> float:
    """Relative luminance of ``#rrggbb`` after WCAG 2."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1])
def test_contrast_is_at_least_four_and_a_half(scheme):
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", CSS.split("@media (prefers-color-scheme: dark)")[scheme]))
    pairs = [(ink, back) for ink in ("ink", "soft", "link") for back in ("paper", "raised", "open-back", "bad-back")]
    pairs += [(ink, "paper") for ink in ("good", "bad", "open", "find")]
    pairs += [(ink, f"{ink}-back") for ink in ("good", "bad", "open", "find")]
    for ink, back in pairs:
        light, dark = sorted((luminance(colours[ink]), luminance(colours[back])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, back)


BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium or Chrome on the path")
def test_a_browser_opens_it_without_complaint(folder, source, tmp_path):
    quiet = [f"--disable-{what}" for what in ("gpu", "quic", "background-networking", "component-update", "sync")]
    options = ["--headless", "--no-sandbox", "--no-first-run", "--enable-logging=stderr", "--v=0", "--dump-dom", *quiet]
    done = subprocess.run(
        [str(BROWSER), *options, f"--user-data-dir={tmp_path}", (folder / "report.html").as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "CONSOLE" not in done.stderr
    seen = Page(done.stdout.partition("\n")[2] if done.stdout.startswith("<!DOCTYPE") else done.stdout)
    assert sorted(filter(None, seen.heads)) == sorted(filter(None, Page(source).heads))

"""Notebooks of examples/ run from top to bottom, show what they say, and are committed without what they show."""

import json
from pathlib import Path

import nbclient
import nbformat
import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
KERNEL_SECONDS = 300  # for one cell: the first one may compile kernels


@pytest.fixture(scope="module")
def alerts(tmp_path_factory):
    """The notebook about alerts after it ran: by source, the outputs of its cells with code."""
    return run(EXAMPLES / "alerts.ipynb", tmp_path_factory.mktemp("jupyter"))


def run(path, home):
    """Run a notebook in a kernel of its own, whose settings and history are in `home`."""
    notebook = nbformat.read(path, as_version=4)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "MPLCONFIGDIR"):
            patch.setenv(name, str(home / name.lower()))
        patch.setenv("PYTHONWARNINGS", "error")
        patch.setenv("CONTRADA_DATA", "nowhere")
        client = nbclient.NotebookClient(
            notebook, timeout=KERNEL_SECONDS, resources={"metadata": {"path": str(EXAMPLES)}}
        )
        client.execute()
    return {cell.source: cell.outputs for cell in notebook.cells if cell.cell_type == "code"}


def shown(outputs, kind, *words):
    """All that cells show in one form, of those whose source has these words."""
    found = [output for source, cell in outputs.items() if all(word in source for word in words) for output in cell]
    return [output.data[kind] for output in found if "data" in output and kind in output.data]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_are_committed_without_outputs(path):
    notebook = json.loads(path.read_text())
    nbformat.validate(notebook)
    for cell in notebook["cells"]:
        assert cell["metadata"] == {}
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    assert notebook["metadata"]["language_info"] == {"name": "python"}, "the version of Python differs from run to run"


def test_nothing_goes_to_standard_error(alerts):
    texts = [output.text for cell in alerts.values() for output in cell if output.get("name") == "stderr"]
    assert [text for text in texts if not text.startswith("contrada: compiling kernels")] == []


def test_regions_are_drawn(alerts):
    (region,) = shown(alerts, "text/html", 'alerts["Wildfire"]["area"]', "LEVELS")
    assert "<svg" in region
    assert "EPSG:32632" in region
    (column,) = shown(alerts, "text/html", "RegionArray.from_wkb")
    assert column.count("<path") == 40
    assert "RegionArray of 40 regions" in column
    (alone,) = shown(alerts, "image/svg+xml", "RegionArray.from_wkb")
    assert alone.startswith("<svg")


def test_answers_name_who_hears_of_it(alerts):
    (one,) = shown(alerts, "text/html", 'table.match(alerts["Wildfire"])')
    assert "3 matches" in one
    assert all(name in one for name in ("Fonte Nuova", "Fonte Vecchia", "Torre Nuova"))
    (many,) = shown(alerts, "text/html", "match_many")
    assert "messages match" in many
    assert "Pieve Nuova" in many


def test_explanations_show_verdicts_and_relations(alerts):
    (heat,) = shown(alerts, "text/html", 'table.explain(alerts["Heat"]')
    assert "no match" in heat
    assert "level is 2" in heat
    assert "<b>contains</b>" in heat
    (fire,) = shown(alerts, "text/html", 'table.explain(alerts["Wildfire"]')
    assert "no match" not in fire
    assert fire.count("<svg") >= 1


def test_plots_are_pictures(alerts):
    pictures = [*shown(alerts, "image/png", "table.plot"), *shown(alerts, "image/png", "fire.plot")]
    assert len(pictures) == 2
    assert all(len(picture) > 10_000 for picture in pictures), "bytes in base64: an empty plot has fewer"


def test_the_patrol_enters_stays_and_leaves(alerts):
    (events,) = shown(alerts, "text/html", "patrol.publish")
    assert events.index(">enter<") < events.index(">dwell<") < events.index(">exit<")
    assert "patrol 7" in events

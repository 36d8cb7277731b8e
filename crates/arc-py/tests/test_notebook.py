"""The notebook of examples/python runs from top to bottom, and a long query shows in a notebook how far it is."""

from pathlib import Path
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "python" / "host_metrics.ipynb"
pytestmark = pytest.mark.proof


def executed(notebook: Any, folder: Path) -> Any:
    """Runs all cells; one that raises ends it."""
    client = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    return client.execute()


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Settings of the user's own are not part of it."""
    for name in ("JUPYTER_CONFIG_DIR", "IPYTHONDIR", "MPLCONFIGDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))


def test_the_notebook_is_kept_without_its_answers() -> None:
    notebook = nbformat.read(EXAMPLE, as_version=4)
    assert outputs(notebook) == [] and len(notebook.cells) > 10


@pytest.mark.filterwarnings("ignore")
def test_the_notebook_runs_from_points_to_plots(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    shown = outputs(executed(nbformat.read(EXAMPLE, as_version=4), tmp_path))
    data = [output["data"] for output in shown if "data" in output]
    texts = "".join(each.get("text/plain", "") for each in data)
    assert "Written(points=103680" in texts and "1728" in texts and "(105408, " in texts
    assert sum("image/png" in each for each in data) == 3, "three plots"
    assert sum("<table" in each.get("text/html", "") for each in data) >= 3, "three tables"
    assert any("host-04" in each.get("text/html", "") + each.get("text/plain", "") for each in data)


@pytest.mark.filterwarnings("ignore")
def test_a_long_query_shows_how_far_it_is(tmp_path: Path) -> None:
    source = """
import arc
from IPython import display

shown = []
publish = display.DisplayHandle.update
display.DisplayHandle.update = lambda handle, data, **kw: (shown.append(data["text/plain"]), publish(handle, data, **kw))
engine = arc.open("data", query_timeout=2.5)
try:
    engine.sql("d", "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b WHERE a.value > b.value").fetchall()
except arc.QueryTimeoutError:
    pass
assert len(shown) >= 1 and shown[-1] == "", shown
"""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    (place,) = [output for output in outputs(executed(notebook, tmp_path)) if output["output_type"] == "display_data"]
    assert place["data"]["text/plain"] == "", "nothing of it stays"

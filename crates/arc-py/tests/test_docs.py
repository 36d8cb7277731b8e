"""What the documentation shows does what it says: docstrings as doctests, and docs/python.md block by block, and docs/adbc.md."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import arc
import pytest

ROOT = Path(__file__).resolve().parents[3]
MODULES = ["arc"] + [f"arc.{module.name}" for module in pkgutil.iter_modules(arc.__path__) if module.name != "_arc"]
LINES = "pump,id=7 rpm=1450i 1700000000000000000\npump,id=8 rpm=1502i 1700000060000000000"
FINDER = doctest.DocTestFinder(exclude_empty=True)

EXAMPLES = {
    test.name: test for name in MODULES for test in FINDER.find(importlib.import_module(name)) if test.examples
}


def test_there_are_examples() -> None:
    names = {name.rpartition(".")[2] for name in EXAMPLES}
    assert {"sql", "execute", "write", "writer", "scan", "filter", "join", "df", "pl", "arrow", "aio"} <= names


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(engine: arc.Engine, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "example").mkdir()
    monkeypatch.chdir(tmp_path / "example")
    engine.write_lp("plant", LINES).raise_for_rejected()
    test = EXAMPLES[name]
    test.globs = {"engine": engine, "__name__": "example"}
    out: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=out.append, clear_globs=False)
    assert runner.failures == 0, "".join(out)


@pytest.mark.parametrize(("page", "least"), [("python.md", 8), ("adbc.md", 1)])
def test_a_page_runs_from_top_to_bottom(page: str, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / page).read_text(), re.M | re.S)
    assert len(blocks) >= least
    names: dict[str, object] = {"__name__": "page"}
    try:
        for block in blocks:
            if "arc.connect(" not in block:
                exec(compile(block, f"docs/{page}", "exec"), names)
    finally:
        engine = names.get("engine")
        if isinstance(engine, arc.Engine):
            engine.close()

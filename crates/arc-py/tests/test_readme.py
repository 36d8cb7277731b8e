"""What the READMEs tell a reader of Python to type does what they say."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

EXAMPLES = [
    pytest.param(text, id=f"{path} {number}")
    for path in ["README.md", "crates/arc-py/README.md"]
    for number, text in enumerate(re.findall(r"^```python\n(.*?)^```$", (ROOT / path).read_text(), re.M | re.S))
    if "import arc" in text
]


def test_both_readmes_have_an_example() -> None:
    assert len(EXAMPLES) == 2


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_example_runs(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(example, names)
    table = names["table"]
    assert [row["id"] for row in table.to_pylist()].count("7") == 1  # type: ignore[attr-defined]
    assert list(tmp_path.glob("data/data/plant/pump/*/*.parquet")), "closing it flushes"

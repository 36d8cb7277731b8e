"""What the tests share: an open engine in a folder of its own."""

from collections.abc import Iterator
from pathlib import Path

import arc
import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where an engine can be opened."""
    return tmp_path / "data"


@pytest.fixture
def engine(folder: Path) -> Iterator[arc.Engine]:
    """An open engine without a point in it."""
    with arc.open(folder) as engine:
        yield engine

"""The probes of a server under attack: what they put up with, and what they report."""

import json
import os
import pathlib
import time

import pytest
from watch import Health

TIMED_OUT = (504, b'{"success":false,"error":"query timed out after 1 s"}')


class Answers:
    """A server that gives these answers, the last of them for ever."""

    def __init__(self, *answers: tuple[int, bytes]) -> None:
        self.answers = list(answers)
        self.log: list[str] = []

    def sql(self, query: str, database: str) -> list[list[int]]:
        status, answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if status != 200:
            raise RuntimeError(f"{query}: {status} {answer!r}")
        return json.loads(answer)["data"]


def health(patience_s: float, *answers: tuple[int, bytes]) -> Health:
    return Health(Answers(*answers), "probes", patience_s)  # type: ignore[arg-type]


def test_a_count_has_as_long_as_the_probe_is_patient() -> None:
    right, wrong = (200, b'{"data":[[0]]}'), (200, b'{"data":[[1]]}')
    assert health(60, TIMED_OUT, TIMED_OUT, right).count()
    assert not health(60, TIMED_OUT, wrong).count()


@pytest.mark.parametrize(("patience_s", "answer"), [(0.0, TIMED_OUT), (60.0, (503, b"busy"))])
def test_a_count_that_is_late_or_refused_is_a_problem(
    patience_s: float, answer: tuple[int, bytes]
) -> None:
    with pytest.raises(RuntimeError, match="timed out|busy"):
        health(patience_s, answer).count()


def test_a_panic_is_told_once() -> None:
    watched = health(60, (200, b'{"data":[[0]]}'))
    watched.server.log += ['{"message":"query"}\n', '{"level":"ERROR","message":"panic: why"}\n']
    assert watched.panics() == ['{"level":"ERROR","message":"panic: why"}']
    assert watched.panics() == []


def test_a_write_is_late_by_what_the_disk_does_not_take(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = health(0.2, (200, b'{"data":[[0]]}'))
    watched.server.data_dir = tmp_path / "data"
    monkeypatch.setattr(Health, "write", lambda _: time.sleep(0.5) or True)
    assert "write answered after" in watched.probe()[0]
    monkeypatch.setattr(os, "fsync", lambda _: time.sleep(0.45))
    assert watched.probe() == []

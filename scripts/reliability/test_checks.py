"""What the checks of the storm, of `answers.py` and of `hunt.py` find: each is given what is right, and what is wrong in its way."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any, Optional

import comparison
import hunt
import pyarrow as pa
from bodies import Points
from comparison import Answer
from doors_out import Refused
from drops import DroppedTable
from oracle import Fate, Request
from versions import TABLES, Point, Version, Versions

NAN = float("nan")


def stored(number: int) -> Request:
    return Request(Points(number, 0, number, 1, 0), ("dropped_0",), Fate.STORED)


def answered(table: DroppedTable, number: int) -> Request:
    request = stored(number)
    table.begin(request)
    table.end(request)
    return request


def test_a_drop_without_an_answer_takes_all_or_nothing() -> None:
    for left, is_wrong in ((0, False), (1, True), (2, False)):
        table = DroppedTable("dropped_0")
        requests = [answered(table, number) for number in range(2)]
        table.begin_drop()
        assert {request.fate for request in requests} == {Fate.OPEN}
        for place, request in enumerate(requests):
            request.fate = Fate.STORED if place < left else Fate.ABSENT
        assert bool(table.settle("case")) == is_wrong


def test_a_write_beside_a_drop_may_come_before_or_after_it() -> None:
    table = DroppedTable("dropped_0")
    before, beside = answered(table, 1), stored(2)
    table.begin(beside)
    drop = table.begin_drop()
    later = answered(table, 3)
    table.end_drop(drop, is_done=True)
    table.end(beside)
    assert (before.fate, beside.fate, later.fate) == (Fate.ABSENT, Fate.OPEN, Fate.OPEN)
    assert answered(table, 4).fate is Fate.STORED


def test_a_drop_that_was_refused_did_nothing() -> None:
    table = DroppedTable("dropped_0")
    request = answered(table, 1)
    table.end_drop(table.begin_drop(), is_done=False)
    assert request.fate is Fate.STORED


Shown = dict[Point, tuple[Optional[int], Optional[int]]]


def rows(points: Shown) -> dict[str, list[list[Any]]]:
    return {
        table: [["w0", point, a, a and a / 2, f"x{a}", b] for (name, point), (a, b) in points.items() if name == table]
        for table in TABLES
    }


def give(points: Shown, version: Version, to: list[Point]) -> None:
    for point in to:
        points[point] = version.number, version.number if version.has_second else points.get(point, (None, None))[1]


def with_history() -> tuple[Versions, Shown]:
    versions = Versions(0, random.Random(1))
    points: Shown = {}
    for _ in range(20):
        version, _ = versions.draw()
        version.fate = Fate.STORED
        give(points, version, version.points)
    assert versions.check(rows(points), "case") == []
    return versions, points


def test_a_version_is_lost_half_there_or_back_again() -> None:
    def large(versions: Versions) -> Version:
        while True:
            version, _ = versions.draw()
            if len(version.points) > 1:
                versions.sent = [version]
                return version

    versions, points = with_history()
    large(versions).fate = Fate.STORED
    assert any("is lost" in one for one in versions.check(rows(points), "case"))

    versions, points = with_history()
    version = large(versions)
    assert versions.check(rows(points), "absent and open") == []
    give(points, version, version.points)
    assert any("no request since" in one for one in versions.check(rows(points), "there after all"))

    versions, points = with_history()
    version = large(versions)
    give(points, version, version.points[1:])
    assert any("half of" in one for one in versions.check(rows(points), "case"))


def test_a_refused_version_is_not_there() -> None:
    versions, points = with_history()
    version, _ = versions.draw()
    version.fate = Fate.ABSENT
    give(points, version, version.points)
    assert versions.check(rows(points), "case") != []


def answer(**columns: list[Any]) -> Answer:
    return Answer(pa.table(columns))


def wrong(
    given: Answer,
    reference: Answer,
    keys: list[int],
    limit: Optional[int] = None,
    offset: int = 0,
    is_rough: bool = False,
) -> str:
    width = len(given.kinds)
    return comparison.compare(given, reference, width, keys, limit, offset, [is_rough] * width)


def test_rows_without_an_order_are_a_bag() -> None:
    assert not wrong(answer(a=[1, 2, 2]), answer(a=[2, 1, 2]), [])
    assert wrong(answer(a=[1, 1, 2]), answer(a=[2, 1, 2]), [])
    assert wrong(answer(a=[1, 2]), answer(a=[2, 1, 2]), [])


def test_rows_that_are_equal_in_the_order_may_come_in_any() -> None:
    reference = answer(a=["x", "y", "z"], k=[1, 1, 2])
    assert not wrong(answer(a=["y", "x", "z"]), reference, [1])
    assert wrong(answer(a=["x", "z", "y"]), reference, [1])
    assert not wrong(answer(a=["y"]), reference, [1], limit=1)
    assert not wrong(answer(a=["x", "z"]), reference, [1], limit=2, offset=1)
    assert wrong(answer(a=["z"]), reference, [1], limit=1)
    assert wrong(answer(a=["x", "x"]), reference, [1], limit=2)


def test_zeros_and_nan_are_one_each_and_types_count() -> None:
    assert not wrong(answer(a=[0.0, NAN]), answer(a=[NAN, -0.0]), [])
    assert wrong(answer(a=[1]), answer(a=[1.0]), [])
    assert wrong(answer(a=["1"]), answer(a=[1]), [])
    assert wrong(answer(a=[None, 1]), answer(a=[0, 1]), [])


def test_only_sums_may_be_rounded() -> None:
    one, other = answer(a=[0.1 + 0.2]), answer(a=[0.3])
    assert wrong(one, other, [])
    assert not wrong(one, other, [], is_rough=True)
    assert wrong(answer(a=[0.3 + 1e-9]), other, [], is_rough=True)


def test_rows_beside_rounded_sums_may_have_nulls_in_lists() -> None:
    rows = [((1, None), 0.5), (None, 0.5), ((1, 2), 0.5), (("a",), 0.25)]
    assert comparison.same_rows(rows, rows[::-1], [False, True])
    assert not comparison.same_rows(rows, [((1, 3), 0.5), *rows[1:]], [False, True])


def test_a_hunt_finds_rows_that_differ_and_doors_that_refuse() -> None:
    state = hunt.State(("time", "n", "room"), {(1,): {"time": 10**9, "n": 1, "room": "a"}, (2,): {"time": 2 * 10**9, "n": 2}})
    right = hunt.answered(state.table(), "SELECT n, time, room FROM {t} ORDER BY n")
    sql = "SELECT n, time, room FROM {t} ORDER BY n"

    def refuse(_sql: str, _types: list[pa.DataType]) -> pa.Table:
        raise Refused("500")

    others = {
        "a row is missing": lambda *_: right.slice(0, 1),
        "a row is there twice": lambda *_: pa.concat_tables([right, right.slice(1)]),
        "another value": lambda *_: right.set_column(2, "room", pa.array(["a", "b"])),
        "another time": lambda *_: right.set_column(1, "time", pa.array([1, 2], pa.timestamp("ns", "UTC"))),
        "refused": refuse,
    }
    for name, door in {"as it is": lambda *_: right, **others}.items():
        life = hunt.Life(SimpleNamespace(house=None, doors={name: door}), "t", random.Random(1))
        life.ask(sql, state, "t")
        assert bool(life.wrong) == (name in others), name

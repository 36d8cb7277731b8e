"""What the doors find: tables are given back as they were written, and with one thing changed in each."""

from __future__ import annotations

import argparse
import math
import random
from decimal import Decimal
from typing import Any

import answer_formats
import pyarrow as pa
import pytest
from door_values import COLUMNS, TAG, Column, Drawn, Row, array, equal, same, values_of
from doors import KNOWN, Placed, Round, Visit, is_beside
from doors_in import DOORS_IN, DoorIn, Table, clock, day, everything, literal, moment
from doors_out import OPERATORS, Finder, Refused, differing, found, passed

ROWS = [row for batch in Drawn(random.Random(1)).batches for row in batch]
BY_NAME = {column.name: column for column in everything(COLUMNS)}


def rows_of(columns: list[Column]) -> list[Row]:
    return [{column.name: row.get(column.name) for column in everything(columns)} for row in ROWS]


def wrong(changed: list[Row], form: str = "arrow", given: list[Row] = ROWS) -> list[str]:
    """What is found where rows were written and others came."""
    columns = [column for column in everything(COLUMNS) if column.name in ROWS[0]]
    answer = {one.name: array([row[one.name] for row in changed], one.types_in("typed")[-1]) for one in columns}
    return [name for name, _, _ in differing(form, columns, "typed", given, pa.table(answer))]


def with_cell(place: int, name: str, value: Any) -> list[Row]:
    return [{**row, name: value} if at == place else row for at, row in enumerate(ROWS)]


def test_what_comes_as_it_was_is_no_difference() -> None:
    assert wrong(ROWS) == []


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("s", "", None),
        ("s", None, ""),
        ("s", "a", "A"),
        ("host", "null", None),
        ("f", 0.0, -0.0),
        ("f", math.nan, None),
        ("f", math.inf, -math.inf),
        ("f", 0.1, 0.10000000000000002),
        ("f", 5e-324, 0.0),
        ("i", 2**63 - 1, 2**63 - 2),
        ("u", 2**64 - 1, 0),
        ("b", False, None),
        ("b", True, False),
        ("t", 1, 0),
        ("time", -1, 1),
    ],
)
def test_a_changed_value_and_a_lost_null_are_found(name: str, before: Any, after: Any) -> None:
    place = next(at for at, row in enumerate(ROWS) if row["n"] == 4)
    given = with_cell(place, name, before)
    assert wrong(given, given=given) == []
    assert wrong(with_cell(place, name, after), given=given) == [name]


def test_swapped_rows_a_lost_row_and_one_too_many_are_found() -> None:
    assert "n" in wrong([ROWS[1], ROWS[0], *ROWS[2:]])
    values = {name: value for name, value in ROWS[0].items() if name not in ("n", "time")}
    others = {name: value for name, value in ROWS[1].items() if name not in ("n", "time")}
    assert wrong([{**ROWS[0], **others}, {**ROWS[1], **values}, *ROWS[2:]])
    assert wrong(ROWS[:-1]) == [""]
    assert wrong([*ROWS, ROWS[0]]) == [""]


def test_another_type_is_found() -> None:
    columns = [BY_NAME["f32"]]
    answer = pa.table({"f32": pa.array([1.0], pa.float32())})
    assert [name for name, _, _ in differing("Flight", columns, "typed", [{"n": 0, "f32": 1.0}], answer)] == ["f32"]
    # A write of Arrow and CREATE TABLE make it of 64 bits; JSON does not say.
    wide = answer.cast(pa.schema([("f32", pa.float64())]))
    for shape in ("typed", "created"):
        assert differing("Flight", columns, shape, [{"n": 0, "f32": 1.0}], wide) == []
    assert differing("json", columns, "typed", [{"n": 0, "f32": 1.0}], answer) == []
    # Files keep the width of integers.
    for type_ in (pa.int8(), pa.int64()):
        given = pa.table({"i8": pa.array([1], type_)})
        assert differing("Flight", [BY_NAME["i8"]], "bare", [{"n": 0, "i8": 1}], given) == []


def test_values_of_each_type_come_back_from_arrow() -> None:
    for column in everything(COLUMNS):
        values = [None, *(column.draw(random.Random(seed)) for seed in range(30))]
        back = values_of(pa.chunked_array([array(values, column.arrow)]))
        assert all(same(one, other) for one, other in zip(back, values)), column


def test_each_round_has_nulls_absent_columns_and_rows_in_each_column() -> None:
    for seed in range(20):
        drawn = Drawn(random.Random(seed))
        rows = [row for batch in drawn.batches for row in batch]
        assert sorted(row["n"] for row in rows) == list(range(len(rows)))
        assert len({row["time"] for row in rows}) == len(rows)
        assert any(all(row[column.name] is None for column in drawn.columns) for row in rows)
        absent = [column for column in drawn.columns if column not in drawn.present[2]]
        assert absent and all(row[column.name] is None for row in drawn.batches[2] for column in absent)
        nulls = [one for one in drawn.columns if all(row[one.name] is None for row in drawn.batches[1])]
        assert nulls and set(nulls) <= set(drawn.present[1])


def test_rows_are_found_by_what_is_equal_in_sql() -> None:
    f = BY_NAME["f"]
    rows = [{"n": place, "f": value} for place, value in enumerate([0.0, -0.0, None, math.nan, 1.0])]
    for operator in OPERATORS:
        assert found(rows, f, operator, -0.0) == [0, 1]
        assert found(rows, f, operator, math.nan) == [3]
    assert found(rows, f, "=", None) == []
    assert found(rows, f, "IS NOT DISTINCT FROM", None) == [2]
    assert not equal(None, None)


def test_formats_are_read_to_the_last_digit() -> None:
    types = [pa.float64(), pa.decimal128(38, 10), pa.timestamp("s"), pa.date32(), pa.time64("ns"), pa.binary()]
    cells = b'-0,1234567890123456789012345678.0123456789,"9999-12-31T23:59:59Z","0001-01-01T00:00:00Z",'
    cells += b'"23:59:59.999999999","00ff"'
    names = b'["a","b","c","d","e","f"]'
    csv = b"a,b,c,d,e,f\n" + cells.replace(b'"', b"") + b"\n"
    line = b"{" + b",".join(b'"%c":%s' % (97 + place, cell) for place, cell in enumerate(cells.split(b","))) + b"}\n"
    json = b'{"columns":' + names + b',"data":[[' + cells + b"]]}"
    for form, data in (("json", json), ("ndjson", line), ("csv", csv)):
        read = answer_formats.read(form, data, types)
        [zero], [decimal], [end], [first], [last], [blob] = map(values_of, read.columns)
        assert math.copysign(1, zero) == -1, form
        assert decimal == Decimal("1234567890123456789012345678.0123456789")
        assert (end, first, last) == (253_402_300_799 * 10**9, -719_162, 86_400 * 10**9 - 1)
        assert blob == b"\x00\xff"


def test_what_a_format_leaves_of_a_value_is_known() -> None:
    f, span = BY_NAME["f"], BY_NAME["span"]
    assert passed("json", f, math.nan) is None and passed("csv", f, math.inf) == math.inf
    assert passed("msgpack", BY_NAME["dec"], Decimal("0.001")) == 0.001
    assert [passed("json", span, value * 10**6) for value in (0, 1, -1500)] == ["P0D", "PT0.001S", "-PT1.5S"]
    assert passed("arrow", span, 10**6) == 10**6


def test_values_have_literals() -> None:
    assert moment(-1) == "1969-12-31T23:59:59.999999999Z" and moment(0) == "1970-01-01T00:00:00.000000000Z"
    assert clock(86_399 * 10**9 + 1) == "23:59:59.000000001" and day(-719_162) == "0001-01-01"
    assert literal(BY_NAME["s"], "it's") == "'it''s'" and literal(BY_NAME["i8"], None) == "NULL"
    assert literal(BY_NAME["f"], -math.inf) == "CAST('-Infinity' AS DOUBLE)"
    assert literal(BY_NAME["bin"], b"\xff") == "X'ff'"


def test_a_float_beside_another_is_told_from_other_floats() -> None:
    assert is_beside((0.1, math.nextafter(0.1, 1)))
    for values in ((0.1, 0.2), (0.1, None), (0.1, math.nan), (), ("a", "b")):
        assert not is_beside(values)


class Broken(Visit):
    """A visit whose server refuses or stores what the test says; it never starts one."""

    def __init__(self, of: Round) -> None:
        super().__init__(of, "1.0")

    def make(self, house: Any, table: Table) -> list[Row]:
        return []


def a_round(tmp_path: Any) -> Round:
    return Round(argparse.Namespace(directory=tmp_path, strict=False, seed="1", rounds=1, seconds=1.0))


def test_what_a_door_cannot_carry_is_expected_as_its_contract_says(tmp_path: Any) -> None:
    visit = Broken(a_round(tmp_path))
    columns = [TAG, BY_NAME["s"], BY_NAME["f"]]
    row = {"n": 0, "host": "", "s": None, "f": math.inf}
    expected = {"CSV": (None, "", math.inf), "line protocol": (None, None, None)}
    expected["Arrow stream"] = (None, None, math.inf)
    for door in DOORS_IN:
        if door.name in expected:
            table = Table("t", "created", True)
            kept = visit.kept(Placed(table, door, columns, []), columns, row)
            assert (kept["host"], kept["s"], kept["f"]) == expected[door.name]
            # What is absent stays so, and where nothing is a tag an empty text is one.
            assert visit.kept(Placed(table, door, columns, []), [], row) == row
            kept = visit.kept(Placed(Table("t", "created", False), door, columns, []), columns, row)
            assert kept["host"] == ""


def test_a_refused_value_is_named_and_the_rest_of_its_row_is_written(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    of = a_round(tmp_path)
    visit = Broken(of)
    stored: list[str] = []

    def put(_: Any, table: Table, columns: Any, rows: list[Row]) -> str:
        if any(column.name == "i" and row["i"] is not None for column in columns for row in rows):
            return "400 no integers today"
        stored.append(table.name)
        return ""

    visit.place(None, DOORS_IN[0])  # type: ignore[arg-type]
    [placed] = visit.placed
    placed.door = DoorIn("door", put, ("bare",), True)
    row = {**dict.fromkeys(BY_NAME), "n": 7, "time": 1, "i": 5, "s": "a"}
    visit.send(None, placed, [BY_NAME["s"], BY_NAME["i"]], [row])  # type: ignore[arg-type]
    assert of.differences == 1 and "column i, row 7: 5 is refused: 400 no integers today" in capsys.readouterr().out
    assert placed.rows == [{**row, "i": None}] and placed.table.name in stored


def test_rows_that_are_refused_together_and_not_alone_are_a_difference(tmp_path: Any) -> None:
    class Empty:
        def sql(self, *_: str) -> list[Any]:
            return []

    of = a_round(tmp_path)
    visit = Broken(of)
    visit.server = Empty()  # type: ignore[assignment]
    visit.place(None, DOORS_IN[0])  # type: ignore[arg-type]
    [placed] = visit.placed
    refuse = DoorIn("door", lambda *given: "400 too many" if len(given[3]) > 1 else "", ("bare",), True)
    placed.door = refuse
    rows = [{**dict.fromkeys(BY_NAME), "n": place, "time": place} for place in range(2)]
    visit.send(None, placed, [BY_NAME["s"]], rows)  # type: ignore[arg-type]
    assert of.differences == 1 and len(placed.rows) == 2


def test_an_error_and_rows_that_are_not_found_are_differences(tmp_path: Any) -> None:
    of = a_round(tmp_path)
    visit = Broken(of)
    visit.place(None, DOORS_IN[0])  # type: ignore[arg-type]
    [placed] = visit.placed
    placed.rows = [dict(row) for row in rows_of(list(COLUMNS))]
    answers: list[Any] = [[], Refused("500 a bug")]

    def find(*_: Any) -> Any:
        answer = answers.pop()
        if isinstance(answer, Refused):
            raise answer
        return answer

    finder = Finder("finder", find)
    for count in (1, 2):
        visit.random = random.Random(3)
        # The number of a row is never null.
        visit.find(None, placed, finder, BY_NAME["n"], "unflushed")  # type: ignore[arg-type]
        assert of.differences == count


def test_what_is_known_is_of_one_kind() -> None:
    rounded = KNOWN[0]
    near, far = (0.1, math.nextafter(0.1, 1)), (0.1, 0.2)
    assert rounded.holds("Parquet", "msgpack", "d", "", near)
    for door_out, values in (("msgpack", far), ("json", near)):
        assert not rounded.holds("Parquet", door_out, "d", "", values)
    assert TAG.name not in {name for known in KNOWN for name in known.columns}

"""The statements and bodies of `extremes.py`, and its checks of answers that are right or wrong."""

from __future__ import annotations

import io
import pathlib
import random
import re
import struct
from itertools import islice
from typing import cast

import extreme_bodies
import extreme_clauses
import extreme_types
import extreme_values
import extremes
import pyarrow as pa
import pytest
from extreme_requests import Case, Outcome, leaked, plain, query, statement_case
from extreme_statements import (
    GUESSES,
    Drawing,
    Routine,
    Statement,
    plain_call,
    routines,
    signatures_of_syntax,
)
from extreme_world import narrow, secrets, wide

LPAD = Routine("lpad", "scalar", (("text", "int", "text"),))
ADDED = [
    LPAD,
    Routine("added_sum", "aggregate", (("float",),)),
    Routine("added_rank", "window", ((),)),
    Routine("added_rows", "table", (("int", "int"),)),
]


def drawn(seed: int, count: int) -> list[Statement]:
    return list(islice(Drawing(random.Random(seed)).endless(ADDED), count))


def test_an_example_of_syntax_gives_the_kinds_of_parameters() -> None:
    assert signatures_of_syntax("lpad(str, n[, padding_str])") == [
        ("text", "int"),
        ("text", "int", "text"),
    ]
    assert signatures_of_syntax("array_distance(array1, array2)") == [("list", "list")]
    assert signatures_of_syntax("date_part(datepart, timestamp)") == [("part", "time")]
    assert signatures_of_syntax("now()") == [()]


def test_parameters_come_before_the_example() -> None:
    described = [
        ("encode", "SCALAR", "encode(expression, encoding)"),
        ("later", "SCALAR", ""),
        ("range", "TABLE", ""),
    ]
    parameters = [
        ("encode", 0, 1, "expression", "Utf8"),
        ("encode", 0, 2, "encoding", "Utf8"),
        ("encode", 1, 1, "", "Binary"),
    ]
    encode, later, range_ = routines(described, parameters)
    assert encode.signatures[0] == ("text", "encoding") and ("binary",) in encode.signatures
    assert not later.signatures and later.candidates() and range_.form == "table"


def test_a_function_that_an_upgrade_adds_is_tried_in_each_form() -> None:
    for routine in ADDED:
        each = Drawing(random.Random(1)).one_of_each(ADDED)
        assert any(routine.name in statement.sql for statement in each)
    assert any(re.search(r"added_rank\(\S*\) OVER", statement.sql) for statement in drawn(1, 200))
    assert plain_call(ADDED[3], ("int", "int")) == "SELECT count(*) FROM added_rows(3, 3)"


def test_a_seed_draws_the_same_statements() -> None:
    assert drawn(7, 300) == drawn(7, 300) != drawn(8, 300)


def test_a_template_is_filled_whole() -> None:
    for clause in extreme_clauses.CLAUSES:
        sql = Drawing(random.Random(1)).placed("value", "1", clause, None).sql
        assert not re.search(r"\{[etf]\}|\0", sql), sql
    assert {clause.scope for clause in extreme_clauses.CLAUSES} == {"row", "group", "constant"}


def test_a_call_is_nested_in_itself() -> None:
    nested = [Drawing(random.Random(seed)).nested(LPAD) for seed in range(20)]
    assert max(sql.count("lpad(") for sql in nested) == 24


def test_every_kind_has_values_and_every_column_is_there() -> None:
    assert set(extreme_values.PLAIN) == set(extreme_values.EXTREMES)
    assert {kind for kinds in GUESSES for kind in kinds} <= set(extreme_values.PLAIN)
    assert {kind for _, kind in extreme_values.PARAMETER_KINDS} <= set(extreme_values.PLAIN)
    for table, rows in ((extreme_values.NARROW[0], narrow(9)), (extreme_values.WIDE[0], wide(1))):
        names = {name for columns in table.columns.values() for name in columns}
        assert names <= set(rows.column_names)


def test_types_are_drawn_with_balanced_parentheses() -> None:
    draw = random.Random(1)
    for _ in range(200):
        text = extreme_types.arrow_type(draw, 3)
        assert text.count("(") == text.count(")") and "{" not in text


# Secrets.


def test_no_statement_has_the_value_of_a_secret() -> None:
    for statement in drawn(3, 3_000):
        assert not [secret for secret in leaked(statement.sql.encode(), may_name_secrets=True)]
        names = leaked(statement.sql.encode(), may_name_secrets=False)
        assert bool(names) == statement.names_a_secret()


@pytest.mark.parametrize("write", [extreme_bodies.arrow_stream, extreme_bodies.parquet_file])
def test_a_secret_is_found_in_each_format(write: extreme_bodies.Writer) -> None:
    rows = secrets()
    for column in ("s", "n"):
        data = plain(write(rows.select([column])), "format=parquet")
        assert leaked(data, may_name_secrets=False)
    assert not leaked(plain(write(narrow(9)), "format=parquet"), may_name_secrets=False)
    assert leaked(str(extreme_values.SECRET_NUMBER).encode(), may_name_secrets=True)


def test_a_name_of_a_secret_is_one_where_the_statement_has_it_not() -> None:
    data = f"there is no table {extreme_values.SECRET_TABLE}".encode()
    assert leaked(data, may_name_secrets=False) and not leaked(data, may_name_secrets=True)
    statement = Statement("secret", f"SELECT * FROM {extreme_values.SECRET_TABLE}")
    assert statement_case(statement, "json", "reader").may_name_secrets


# Requests.


def test_a_change_is_the_writers_and_a_condition_goes_to_the_door_of_deletes() -> None:
    case = statement_case(
        Statement("value in INSERT", "INSERT INTO x_scratch (time) VALUES (1)", True),
        "csv",
        "reader",
    )
    assert case.make()[0].role == "writer" and "format" not in case.make()[0].path
    request = query("DELETE FROM x_scratch WHERE i = 1", "json", "writer")
    assert request.path == "/api/v1/delete" and b'"where": "i = 1"' in request.body
    assert "format=csv" in query("SELECT 1", "csv", "reader").path


# Bodies.


def test_bodies_are_named_once_and_made_the_same_each_time() -> None:
    bodies = {body.name: body for body in extreme_bodies.all_bodies()}
    assert len(bodies) == len(extreme_bodies.all_bodies())
    for name in ("arrow: int64, 3 x 1", "parquet: lists, 3 x 1", "parquet: changed bytes 7"):
        assert bodies[name].make() == bodies[name].make()
    rows = pa.ipc.open_stream(io.BytesIO(bodies["arrow: int64, 3 x 1"].make())).read_all()
    assert rows.column("v0").to_pylist() == [-(2**63), 2**63 - 1, 0]


def test_every_type_has_a_body() -> None:
    for name, maker in extreme_bodies.columns().items():
        assert len(maker(0)) == 0, name


def test_a_count_is_declared_larger_than_it_is() -> None:
    row_count = extreme_bodies.marked("arrow", extreme_bodies.MARKED_ROWS, 2**62, 8)
    assert (
        struct.pack("<q", 2**62) in row_count
        and struct.pack("<q", extreme_bodies.MARKED_ROWS) not in row_count
    )
    assert struct.pack("<i", 2**31 - 1) in extreme_bodies.marked(
        "arrow", extreme_bodies.MARKED_SIZE, 2**31 - 1, 4
    )


# Findings.


def test_what_is_known_is_no_violation_and_what_never_fails_is_stale(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr(
        extremes, "TO_BE_MENDED", ((r"abs\(1\)", "ends the process"), (r"abs\(2\)", "is late"))
    )
    findings = extremes.Findings(tmp_path)
    for number in range(4):
        findings.note(
            Case("function abs", f"SELECT abs({number})", list), ["late"] if number != 2 else []
        )
    assert len(findings.violations) == 2 and findings.known[0] == 1
    assert findings.stale() == [r"abs\(2\)"]


def test_a_long_statement_is_kept_whole(tmp_path: pathlib.Path) -> None:
    shown = extremes.Findings(tmp_path).shown("a" * 9_000)
    assert len(shown) < 400 and next(tmp_path.iterdir()).read_text() == "a" * 9_000


class Scripted(extremes.Round):
    """A round over a server that is busy after any case with `bad`, or after two with `half`."""

    def attempt(self, cases: list[Case], clients: int) -> tuple[list[Outcome], list[str]]:
        words = " ".join(case.text for case in cases)
        is_busy = "bad" in words or words.count("half") > 1
        return [Outcome(case, ["200"]) for case in cases], ["busy"] if is_busy else []

    def settle(self) -> None:
        pass


class Living:
    """A server that lives."""

    def __init__(self) -> None:
        self.server = self

    def is_alive(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (["good", "bad", "good"], ["bad"]),
        (["half", "good", "half"], ["3 cases together"]),
        (["good", "half"], []),
    ],
)
def test_a_group_is_taken_apart_where_it_fails(
    texts: list[str], names: list[str], tmp_path: pathlib.Path
) -> None:
    findings = extremes.Findings(tmp_path)
    round_ = Scripted(cast(extremes.World, Living()), findings)
    round_.run_group([Case(text, text, list) for text in texts])
    assert [violation.partition(":")[0] for violation in findings.violations] == names

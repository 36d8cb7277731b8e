"""What the laws find: each kind of case is given ways that agree, and ways that do not."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
from answer_formats import nanoseconds
from comparison import Answer
from expressions import Expressions
from laws import folded
from placeholders import Literals, with_literals, with_placeholders
from spellings import AND, OR, parenthesized, tree
from statements import Select, Source
from terms import same
from ways import Case, Given, Refused, Way, way

SELECT = Select((same("small", "q.n"),), Source("k q", "k q"))


def answer(**columns: list[Any]) -> Answer:
    return Answer(pa.table(columns))


def wrong(one: Given, other: Given, is_ordered: bool = False) -> str:
    given = iter((one, other))
    case = Case("law", SELECT, lambda _: [way("one"), way("other")], is_ordered)

    def ask(_: Way) -> Given:
        return next(given)

    return case.ask(ask)[0]


def test_rows_that_differ_are_found_and_their_order_where_it_counts() -> None:
    assert not wrong(answer(a=[1, 2]), answer(a=[2, 1]))
    assert wrong(answer(a=[1, 2]), answer(a=[2, 1]), is_ordered=True)
    assert wrong(answer(a=[1, 1]), answer(a=[1]))
    assert wrong(answer(a=[1]), answer(a=[1.0]))


def test_one_way_alone_is_not_refused_but_for_reasons() -> None:
    one = answer(a=[1])
    assert wrong(one, Refused("400 there is no such function"))
    assert not wrong(one, Refused("400 sum: the sum does not fit into BIGINT"))
    assert not wrong(Refused("400 this"), Refused("400 that"))
    assert wrong(Refused("500 a bug"), Refused("500 a bug"))


def test_groups_are_folded_by_their_keys() -> None:
    rows = [("a", 1, 2.0, None), ("b", 5, None, "x"), ("a", 2, "NaN", "y")]
    assert sorted(folded(rows, 1, ("sum", "max", "min"))) == [("a", 3, "NaN", "y"), ("b", 5, None, "x")]
    assert sorted(folded(rows, 1, ("leave", "min", "max"))) == [("a", 2.0, "y"), ("b", None, "x")]


def test_few_parentheses_leave_out_what_binds_by_itself() -> None:
    scope = [same(kind, f"q.{kind}") for kind in ("small", "nice", "text", "bool", "time")]
    over = Expressions(random.Random(1), scope, [0], False)
    trees = [tree(over, "bool", 3) for _ in range(200)]
    assert all(one.duck.count("(") >= one.arc.count("(") for one in trees)
    assert any(one.duck != one.arc for one in trees)
    either = next(one for one in trees if one.level == OR)
    assert parenthesized(either, AND) == f"({either.arc})"
    assert parenthesized(either, OR) == either.arc


def test_literals_become_placeholders_with_their_values() -> None:
    literals = Literals(random.Random(1), [], [0], False)
    for kind, type_ in (("small", int), ("int", int), ("float", float), ("text", str), ("bool", bool)):
        for _ in range(30):
            literal = literals.literal(kind).arc
            text, values = with_placeholders(f"SELECT {literal}, {literal}")
            assert text == "SELECT $p0, $p0"
            assert type(values["p0"]) is type_
            assert "«" not in with_literals(literal)


def test_times_are_read_to_the_nanosecond() -> None:
    assert nanoseconds("1969-12-31T23:59:59.999999999Z") == -1
    assert nanoseconds("2026-01-31T12:00:00.5Z") == 1_769_860_800_500_000_000

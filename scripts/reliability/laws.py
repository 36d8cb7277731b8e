#!/usr/bin/env python3
"""Asks Arc each statement in several ways that have to agree, without another engine.

    python scripts/reliability/laws.py --statements 2000 --seed 1 --laws parts,slices

Points and layouts are those of `answers.py`. Laws are of `law_cases.py`: a condition parts the rows into three, a LIMIT takes a
slice, parentheses and spellings change nothing, buckets begin before their times, groups of groups are groups, the layout
changes nothing, DELETE takes what SELECT finds, and wrappers, placeholders and formats pass the rows on. A statement that
breaks a law is made shorter and printed with what each way gave; `--seed S --world W` asks it again. Ends with status 1 then.
"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib
import sys
import time
from collections.abc import Iterable
from typing import Any, Optional

import answer_formats
import pyarrow as pa
from answers import Round, Visit
from comparison import Answer, Rows, sort_key
from drawing import Drawing
from law_cases import LAWS, Laws
from ways import TO_BE_MENDED, Case, DeleteCase, Given, LayoutCase, Refused, Way
from worlds import DATABASE


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--statements", type=int, default=2_000, help="end after so many")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="or after this time")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of all random choices")
    parser.add_argument("--world", type=int, default=None, help="only this world of the seed")
    parser.add_argument("--laws", default=",".join(LAWS), help="only these, of: %(default)s")
    parser.add_argument("--per-world", type=int, default=200, help="statements about one world")
    parser.add_argument("--differences", type=int, default=5, help="end after so many")
    parser.add_argument("--strict", action="store_true", help="report what is to be mended, too")
    parser.add_argument("--directory", type=pathlib.Path, default=None, help="parent of the data directories")
    return parser.parse_args()


class LawVisit(Visit):
    """One world, and the statements about it. DuckDB is not asked."""

    round: LawRound

    def draw(self, count: int, layouts: tuple[str, ...]) -> list[Case]:
        tables = [table.scope() for table in self.world.tables + self.world.small[:2]]
        drawing = Drawing(self.random, tables, self.world.times_ns(), self.world.has_nanoseconds)
        laws = Laws(drawing)
        count = min(count, self.round.options.statements - self.round.statements)
        self.round.statements += count
        names = self.round.options.laws.split(",")
        cases = [laws.draw(names[place % len(names)]) for place in range(count)]
        for case in cases:
            case.layouts = {self.random.choice(layouts)}
            if isinstance(case, LayoutCase):
                case.layouts = set(self.random.sample(layouts, 3))
            if isinstance(case, DeleteCase):
                case.layouts = set(layouts)
        # Some of them flush.
        return sorted(cases, key=lambda case: isinstance(case, DeleteCase))

    def ask(self, asked: list[Case], layout: str) -> None:
        for case in asked:
            is_over = self.round.is_late() or self.round.differences >= self.round.options.differences
            if layout not in case.layouts or is_over:
                continue
            self.round.layouts[layout] += 1
            wrong, given = case.ask(self.given)
            self.round.by_law[case.law] += 1
            answers = [answer for _, answer in given if isinstance(answer, Answer)]
            if len(answers) < len(given):
                self.round.refused += 1
                self.round.refused_by_law[case.law] += 1
            self.round.answers += len(answers)
            self.round.rows += sum(len(answer.rows) for answer in answers)
            if wrong:
                case.layouts = set()
                self.report(case, layout, wrong, given)

    def given(self, way: Way) -> Given:
        """Asks one way."""
        changes = [self.change(statement) for statement in way.before]
        given = [self.one(statement, way) for statement in way.statements] if not any(changes) else []
        for statement in way.after:
            self.change(statement)
        for refused in (*changes, *given):
            if isinstance(refused, Refused):
                return refused
        answers = [one for one in given if isinstance(one, Answer)]
        answer = next((one for one in answers if one.rows), answers[0])
        answer.rows = [row for one in answers for row in one.rows][slice(*way.cut)]
        if way.is_tested:
            answer.rows, answer.kinds = [row[:-1] for row in answer.rows if row[-1]], answer.kinds[:-1]
        if way.fold:
            answer.rows = folded(answer.rows, *way.fold)
            leaves = [way.fold[0] + place for place, fold in enumerate(way.fold[1]) if fold == "leave"]
            answer.kinds = [kind for place, kind in enumerate(answer.kinds) if place not in leaves]
        return answer

    def change(self, statement: str) -> Optional[Refused]:
        path = "/api/v1/write/line-protocol/flush" if statement == "flush" else f"/api/v1/query?db={DATABASE}"
        status, body = self.post(path, json.dumps({"sql": statement}).encode() if statement != "flush" else b"")
        return None if status == 200 else Refused(f"{status} {body.decode()} of {statement}")

    def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        assert self.connection is not None
        self.connection.request("POST", path, body)
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def one(self, statement: str, way: Way) -> Given:
        if statement.startswith("delete "):
            return self.delete(*statement.split(" ", 2)[1:])
        request: dict[str, Any] = {"sql": statement}
        if way.params is not None:
            request["params"] = way.params
        path, body = f"/api/v1/query?db={DATABASE}", json.dumps(request).encode()
        status, data = self.post(f"{path}&format=arrow", body)
        if status != 200:
            return Refused(f"{status} {data.decode()}")
        table = answer_formats.read("arrow", data, [])
        if way.form != "arrow":
            status, data = self.post(f"{path}&format={way.form}", body)
            if status != 200:
                return Refused(f"{status} {data!r}")
            expected = Answer(answer_formats.as_in_json(table) if "json" in way.form else table)
            read = Answer(answer_formats.read(way.form, data, table.schema.types))
            # The other ways come as Arrow: what this format cannot say is put back where the rest is right.
            return Answer(table) if collections.Counter(read.rows) == collections.Counter(expected.rows) else read
        return Answer(table)

    def delete(self, table: str, condition: str) -> Given:
        body = {"database": DATABASE, "measurement": table, "where": condition, "confirm": True}
        status, data = self.post("/api/v1/delete", json.dumps(body).encode())
        if status != 200:
            return Refused(f"{status} {data.decode()}")
        return Answer(pa.table({"count": [json.loads(data)["deleted_count"]]}))

    def report(self, case: Case, layout: str, wrong: str, drawn: list[tuple[str, Given]]) -> None:
        said = " ".join(str(answer) for _, answer in drawn if isinstance(answer, Refused))
        known = [name for text, name in TO_BE_MENDED.items() if text in said]
        if known and not self.round.options.strict:
            self.round.known[known[0]] += 1
            return
        self.round.differences += 1
        print(f"DIFFERENCE seed {self.round.options.seed} world {self.number}, {layout}: {case.law}: {wrong}")
        wrong, given = self.shortest(case).ask(self.given)
        if not wrong:
            print("  and no more when it was asked again: these are the first answers")
            given = drawn
        for text, answer in given:
            print(f"  {text}\n{answer.text() if isinstance(answer, Answer) else '    ' + str(answer)[:500]}")
        rows = [collections.Counter(answer.rows) for _, answer in given if isinstance(answer, Answer)]
        for place, others in enumerate(rows[1:]):
            if others != rows[0]:
                only = (list((one - other).elements())[:5] for one, other in ((rows[0], others), (others, rows[0])))
                print("  only in the first, and only in number {}: {}, {}".format(place + 2, *only))
        print("  written: " + "; ".join(self.world.history[-12:]), flush=True)

    def shortest(self, case: Case) -> Case:
        """Leaves out what the difference does not need."""
        tries, is_shorter = 300, True
        while is_shorter:
            is_shorter = False
            for less in case.shorter():
                tries -= 1
                if tries < 0:
                    return case
                if less.ask(self.given)[0]:
                    case, is_shorter = less, True
                    break
        return case


def folded(rows: Rows, keys: int, folds: Iterable[str]) -> Rows:
    """Makes one row of those with the same keys."""
    groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = collections.defaultdict(list)
    for row in rows:
        groups[row[:keys]].append(row[keys:])
    kept = [(place, fold) for place, fold in enumerate(folds) if fold != "leave"]
    return [
        key + tuple(one_of([row[place] for row in group], fold) for place, fold in kept)
        for key, group in groups.items()
    ]


def one_of(cells: list[Any], fold: str) -> Any:
    there = [cell for cell in cells if cell is not None]
    if not there:
        return None
    if fold == "sum":
        return sum(there)
    if fold == "or":
        result = 0
        for cell in there:
            result |= cell
        return result
    # NaN is a text here, and greater than all numbers.
    ordered = sorted(there, key=lambda cell: sort_key((cell,)))
    return ordered[0 if fold == "min" else -1]


class LawRound(Round):
    """Worlds one after the other, with what was asked of each law."""

    visit = LawVisit

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.by_law: collections.Counter[str] = collections.Counter()
        self.refused_by_law: collections.Counter[str] = collections.Counter()

    def summary(self) -> str:
        laws = ", ".join(f"{count} {law} ({self.refused_by_law[law]} refused)" for law, count in self.by_law.items())
        return f"{laws}\n{super().summary()}"


def main() -> int:
    options = arguments()
    options.seconds = options.minutes * 60
    unknown = set(options.laws.split(",")) - set(LAWS)
    if unknown:
        raise SystemExit(f"there are no laws {', '.join(unknown)}, but {', '.join(LAWS)}")
    print(f"seed {options.seed}", flush=True)
    return LawRound(options).report()


if __name__ == "__main__":
    sys.exit(main())

"""A query that runs when its rows are used, and from which others are made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Union

from arc.carets import with_place
from arc.errors import Error, InvalidInputError
from arc.readable import Readable

if TYPE_CHECKING:
    from arc._arc import Schema, Table
    from arc.store import AnswerLike, Store

Parameters = Union[Sequence[Any], Mapping[str, Any], None]

FRESH = 1.0
"""Seconds for which a plan is kept until its rows are used."""

COMPOSED = re.compile(r"\s*(?:--[^\n]*\n\s*|/\*.*?\*/\s*)*(?:\(\s*)*(?:select|with|values)\b", re.I | re.S)
TRAILING = re.compile(r"(?:\s|;|--[^\n'\"]*(?=\n|$))+\Z")
TOKEN = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|[()]|\w+", re.S)
WORD = re.compile(r"[A-Za-z_]\w*\Z")


class Relation(Readable):
    """The rows of a query. They are computed when they are used, and anew each time that they are.

    ``sql`` has planned it, so that its errors are known. Each use sees every point whose write has returned by then.
    Anything that reads Arrow reads it: ``pyarrow.table(relation)``, ``polars.DataFrame(relation)``,
    ``duckdb.sql("SELECT * FROM relation")``, ``engine.write("copy", relation)``.

    >>> fast = engine.sql("plant", "SELECT id, rpm FROM pump").filter("rpm > 1400").order("rpm DESC")
    >>> fast.limit(1).fetchall()
    [('8', 1502)]
    >>> len(fast)
    2
    """

    __slots__ = ("_store", "_database", "_query", "_params", "_tables", "_planned", "_schema", "_sorted")

    def __init__(self, store: Store, database: str, query: str, params: Parameters, tables: dict[str, Table]) -> None:
        self._store = store
        self._database = database
        self._query = query
        self._params = params
        self._tables = tables
        self._planned: list[tuple[AnswerLike, int, float]] = []
        self._schema: Schema | None = None
        # What `order` was called on, and with.
        self._sorted: tuple[Relation, str] | None = None
        self._cursor = None

    def plan(self) -> Relation:
        """Plans the query, so that its errors are raised and its columns known; returns the relation."""
        changes = self._store._changes
        answer = self._asked()
        if self._store._sees_all_changes:
            self._planned = [(answer, changes, monotonic())]
        return self

    def _asked(self) -> AnswerLike:
        try:
            answer = self._store._ask(self._database, self._query, self._params, self._tables)
            self._schema = answer.schema
        except Error as error:
            raise with_place(error, self._query) from None
        return answer

    def _open(self) -> AnswerLike:
        """Returns an answer to read: that of the plan, if nothing was written since."""
        try:
            # One of several threads gets it.
            answer, changes, at = self._planned.pop()
        except IndexError:
            pass
        else:
            if changes == self._store._changes and monotonic() - at < FRESH:
                return answer
        answer = self._asked()
        return answer

    def explain(self, *, analyze: bool = False) -> str:
        """Returns how the query is computed, as SQL's ``EXPLAIN`` says it.

        analyze: whether to run it, and to say how many rows and how much time each step took.

        >>> "pump" in engine.plant.pump.filter("rpm > 1400").explain()
        True
        """
        query = f"EXPLAIN {'ANALYZE ' if analyze else ''}{self._query}"
        steps = Relation(self._store, self._database, query, self._params, self._tables).fetchall()
        return "\n\n".join(f"{kind}\n{plan}" for kind, plan in steps)

    @property
    def query(self) -> str:
        """The SQL of the relation."""
        return self._query

    @property
    def schema(self) -> Schema:
        """The names and Arrow types of the columns; ``pyarrow.schema(relation.schema)`` for more.

        >>> engine.plant.pump.schema
        <arc.Schema time: Timestamp(ns, "UTC"), id: Dictionary(Int32, Utf8), rpm: Int64>
        """
        if self._schema is None and not self._store._sees_all_changes and COMPOSED.match(self._query):
            # Of a server, where a plan is an answer.
            self._schema = self.limit(0)._open().schema
        elif self._schema is None:
            self.plan()
        assert self._schema is not None
        return self._schema

    def table(self) -> Table:
        return self._store._read(self._open(), self._query)

    def batches(self) -> Iterator[Table]:
        answer = self._open()
        while True:
            batch = self._store._read_next(answer, self._query)
            if batch is None:
                return
            yield batch

    def head(self, rows: int) -> tuple[Table, bool]:
        if not COMPOSED.match(self._query):
            table = self.table()
        else:
            table = self.limit(rows + 1).table()
        return table.slice(0, rows), len(table) > rows

    def __len__(self) -> int:
        """Counts the rows, by a query of its own."""
        if not COMPOSED.match(self._query):
            return len(self.table())
        (count,) = self._made("SELECT count(*) FROM {}").table().columns()[0]
        return int(count)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._open().__arrow_c_stream__(requested_schema)

    # Composing.

    def _inner(self) -> str:
        if not COMPOSED.match(self._query):
            raise InvalidInputError("only a query that begins with SELECT, WITH or VALUES can be composed with others")
        return f"(\n{TRAILING.sub('', self._query)}\n)"

    def _made(self, text: str) -> Relation:
        # Not `format`, for a condition may have braces.
        query = text.replace("{}", self._inner(), 1)
        return Relation(self._store, self._database, query, self._params, self._tables)

    def filter(self, condition: str) -> Relation:
        """Returns the rows that meet a condition, as SQL writes it after ``WHERE``.

        >>> engine.plant.pump.filter("id = '7'").select("rpm").fetchall()
        [(1450,)]
        """
        if self._sorted is not None:
            before, columns = self._sorted
            return before.filter(condition).order(columns)
        return self._made(f"SELECT * FROM {{}} AS t WHERE {condition}")

    def select(self, *columns: str) -> Relation:
        """Returns some columns, each a name or an expression of SQL.

        >>> engine.plant.pump.select("id", "rpm / 60 AS hz").order("id").columns
        ['id', 'hz']
        """
        if not columns:
            raise InvalidInputError("select() needs a column")
        # What is selected stands before the braces.
        query = f"SELECT {', '.join(columns)} FROM {self._inner()} AS t"
        if self._sorted is not None:
            before, by = self._sorted
            renamed = {name.lower() for column in columns for name in re.findall(r"(?i)\bas\s+\"?(\w+)", column)}
            if renamed & {name.lower() for name in re.findall(r"\w+", by)}:
                raise InvalidInputError("select() gives a column another meaning that order() was about; order() last")
            query = f"SELECT {', '.join(columns)} FROM {before._inner()} AS t ORDER BY {by}"
        return Relation(self._store, self._database, query, self._params, self._tables)

    def aggregate(self, aggregates: str, by: str = "") -> Relation:
        """Returns one row for each group, or one for all rows: the columns of ``by``, then the aggregates.

        >>> engine.plant.pump.aggregate("max(rpm) AS most", by="id").order("id").fetchall()
        [('7', 1450), ('8', 1502)]
        """
        columns = f"{by}, {aggregates}" if by else aggregates
        query = f"SELECT {columns} FROM {self._inner()} AS t" + (f" GROUP BY {by}" if by else "")
        return Relation(self._store, self._database, query, self._params, self._tables)

    def order(self, *columns: str) -> Relation:
        """Returns the rows in an order, as SQL writes it after ``ORDER BY``.

        As in SQL, rows that are joined, aggregated or united afterwards have no order any more.

        >>> engine.plant.pump.order("rpm DESC").select("rpm").fetchone()
        (1502,)
        """
        if not columns:
            raise InvalidInputError("order() needs a column")
        by = ", ".join(columns)
        made = self._made(f"SELECT * FROM {{}} AS t ORDER BY {by}")
        made._sorted = (self, by)
        return made

    def limit(self, rows: int, offset: int = 0) -> Relation:
        """Returns the first rows, after leaving some out.

        >>> engine.plant.pump.order("time").limit(1, offset=1).select("id").fetchall()
        [('8',)]
        """
        for name, value in (("rows", rows), ("offset", offset)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise InvalidInputError(f"{name} is {value!r}; a whole number from 0 was expected")
        words = outer_words(self._query)
        if "order" in words and not words & {"limit", "offset", "fetch", "for"}:
            # A subquery would have no order.
            self._inner()
            query = f"{TRAILING.sub('', self._query)}\nLIMIT {rows} OFFSET {offset}"
            return Relation(self._store, self._database, query, self._params, self._tables)
        return self._made(f"SELECT * FROM {{}} AS t LIMIT {rows} OFFSET {offset}")

    def distinct(self) -> Relation:
        """Returns each row once."""
        return self._made("SELECT DISTINCT * FROM {} AS t")

    def union(self, other: Relation) -> Relation:
        """Returns the rows of both, those that are in both twice: ``.distinct()`` leaves one of them."""
        return self._with(other, lambda left, right: f"SELECT * FROM {left} AS l UNION ALL SELECT * FROM {right} AS r")

    def join(self, other: Any, on: str | Sequence[str], how: str = "inner") -> Relation:
        """Joins the rows with those of another relation, a table by its name, or a data frame.

        on: names of columns that both have, or a condition, in which this side is ``l`` and the other ``r``.
        how: ``"inner"``, ``"left"``, ``"right"``, ``"full"``, ``"semi"`` or ``"anti"``.

        >>> names = {"id": ["7", "8"], "site": ["north", "south"]}
        >>> engine.plant.pump.join(names, on="id").select("site", "rpm").order("rpm").fetchall()
        [('north', 1450), ('south', 1502)]
        """
        kinds = {"semi": "LEFT SEMI", "anti": "LEFT ANTI", **{kind: kind.upper() for kind in ("inner", "left", "right", "full")}}
        if how not in kinds:
            raise InvalidInputError(f"how is {how!r}; one of {', '.join(sorted(kinds))} was expected")
        names = [on] if isinstance(on, str) else list(on)
        if isinstance(on, str) and not WORD.match(on):
            condition = f"ON {on}"
        else:
            condition = "USING (" + ", ".join(quoted(name) for name in names) + ")"
        return self._with(
            other, lambda left, right: f"SELECT * FROM {left} AS l {kinds[how]} JOIN {right} AS r {condition}"
        )

    def _with(self, other: Any, text: Any) -> Relation:
        if isinstance(other, str):
            query = text(self._inner(), ".".join(quoted(part) for part in other.split(".")))
            return Relation(self._store, self._database, query, self._params, self._tables)
        if not isinstance(other, Relation) or other._store is not self._store or other._database != self._database:
            from arc.frames import arrow_of
            from arc.scopes import as_rows

            rows = as_rows(other)
            if rows is None:
                rows = as_rows(arrow_of(other))
            name = f"_arc_{len(self._tables)}"
            while name in self._tables:
                name += "_"
            assert rows is not None
            query = text(self._inner(), quoted(name))
            return Relation(self._store, self._database, query, self._params, {**self._tables, name: rows})
        for name in self._tables.keys() & other._tables.keys():
            if self._tables[name] is not other._tables[name]:
                raise InvalidInputError(f"{name!r} is another data frame on each side; give one of them another name")
        params = joined(self._params, other._params, self._query + other._query)
        query = text(self._inner(), other._inner())
        return Relation(self._store, self._database, query, params, {**self._tables, **other._tables})

    def scan(self) -> Any:
        """Returns the rows as a lazy frame of polars, whose conditions, columns and limit become a part of the query."""
        from arc.scan import lazy

        return lazy(self)


def joined(left: Parameters, right: Parameters, query: str) -> Parameters:
    """Returns the values of two queries that become one."""
    if not left or not right:
        return left or right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        for name in left.keys() & right.keys():
            if left[name] is not right[name] and left[name] != right[name]:
                raise InvalidInputError(f"${name} has another value on each side; give one of them another name")
        return {**left, **right}
    if isinstance(left, Mapping) or isinstance(right, Mapping) or re.search(r"\$\d", query):
        raise InvalidInputError("both sides have values for placeholders: use ? in both of them, or $name in both")
    return [*left, *right]


def outer_words(query: str) -> set[str]:
    """Returns the words of a query that are in no parentheses, texts or comments, in lower case."""
    words = set()
    depth = 0
    for token in TOKEN.findall(query):
        depth += {"(": 1, ")": -1}.get(token, 0)
        if depth == 0:
            words.add(token.lower())
    return words


def quoted(name: str) -> str:
    """Returns a name as SQL has it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'

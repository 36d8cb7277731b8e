"""Statements as trees, which are written down in both dialects and can be made shorter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Optional, Union

from terms import Expr

# What a column of an answer may be compared as.
ORDERED = ("small", "int", "uint", "nice", "float", "text", "bool", "time")


@dataclass(frozen=True)
class Order:
    """A sort key: an expression over the rows, or the place of a column of the answer."""

    key: Union[Expr, int]
    suffix: str = ""


@dataclass(frozen=True)
class Source:
    """What stands behind FROM: text around the statements inside of it."""

    arc: str
    duck: str
    inner: tuple[Select, ...] = ()
    marks: frozenset[str] = frozenset()

    def text(self, dialect: str) -> str:
        template: str = getattr(self, dialect)
        for place, select in enumerate(self.inner):
            template = template.replace(f"<{place}>", select.text(dialect))
        return template


@dataclass(frozen=True)
class Select:
    """A statement."""

    items: tuple[Expr, ...]
    source: Source
    where: tuple[Expr, ...] = ()
    group: tuple[Expr, ...] = ()
    grouping: str = ""
    having: tuple[Expr, ...] = ()
    distinct: str = ""
    qualify: str = ""
    # `UNION ALL` or another, and what comes after it.
    other: Optional[tuple[str, Select]] = None
    order: tuple[Order, ...] = ()
    limit: Optional[int] = None
    offset: int = 0
    # Of the names of its columns: those of an inner statement have other ones.
    prefix: str = "a"
    # Of common table expressions: name and statement.
    common: tuple[tuple[str, Select], ...] = ()

    def text(self, dialect: str, is_reference: bool = False) -> str:
        """Writes it down; as a reference without LIMIT, and with sort keys behind the columns of the answer."""
        items = list(self.items)
        if is_reference:
            items += [order.key for order in self.order if isinstance(order.key, Expr)]
        words = []
        if self.common:
            words.append("WITH " + ", ".join(f"{name} AS ({select.text(dialect)})" for name, select in self.common))
        words.append("SELECT" + (f" {self.distinct}" if self.distinct else ""))
        words.append(", ".join(f"{getattr(item, dialect)} AS {self.prefix}{place}" for place, item in enumerate(items)))
        words.append("FROM " + self.source.text(dialect))
        if self.where:
            words.append("WHERE " + " AND ".join(getattr(condition, dialect) for condition in self.where))
        if self.group:
            keys = ", ".join(getattr(key, dialect) for key in self.group)
            words.append(f"GROUP BY {self.grouping}({keys})" if self.grouping else f"GROUP BY {keys}")
        if self.having:
            words.append("HAVING " + " AND ".join(getattr(condition, dialect) for condition in self.having))
        if self.qualify:
            words.append("QUALIFY " + self.qualify)
        if self.other:
            words.append(f"{self.other[0]} {self.other[1].text(dialect)}")
        if self.order:
            keys = ", ".join(
                (f"{self.prefix}{order.key}" if isinstance(order.key, int) else getattr(order.key, dialect))
                + order.suffix
                for order in self.order
            )
            words.append("ORDER BY " + keys)
        if not is_reference and self.limit is not None:
            words.append(f"LIMIT {self.limit}" + (f" OFFSET {self.offset}" if self.offset else ""))
        return " ".join(words)

    def selects(self) -> Iterator[Select]:
        """This statement and those inside of it."""
        yield self
        inner = [*self.source.inner, *(select for _, select in self.common)]
        for select in inner + ([self.other[1]] if self.other else []):
            yield from select.selects()

    def expressions(self) -> Iterator[Expr]:
        for select in self.selects():
            yield from select.items + select.where + select.group + select.having
            yield from (order.key for order in select.order if isinstance(order.key, Expr))

    @property
    def marks(self) -> set[str]:
        return set().union(
            *(select.source.marks for select in self.selects()), *(one.marks for one in self.expressions())
        )

    def key_places(self) -> list[int]:
        """Where the reference has the sort keys."""
        places, extra = [], len(self.items)
        for order in self.order:
            if isinstance(order.key, int):
                places.append(order.key)
            else:
                places.append(extra)
                extra += 1
        return places

    def shorter(self) -> Iterator[Select]:
        """Statements with a little less; they may be wrong ones."""
        if self.common:
            yield from (
                replace(self, common=((name, less),)) for name, select in self.common[:1] for less in select.shorter()
            )
        if self.other:
            yield replace(self, other=None)
        for name in ("limit", "order", "having", "distinct", "qualify", "grouping"):
            value = getattr(self, name)
            if value:
                empty = {"limit": {"limit": None, "offset": 0}}.get(name, {name: type(value)()})
                yield replace(self, **empty)
        if self.group and len(self.items) > 1:
            yield replace(
                self, items=tuple(item for item in self.items if item not in self.group) or self.items, group=()
            )
        for name in ("where", "order", "having", "group"):
            values = getattr(self, name)
            yield from (replace(self, **{name: values[:place] + values[place + 1 :]}) for place in range(len(values)))
        if len(self.items) > 1 and not self.other:
            for place in range(len(self.items)):
                if not any(isinstance(order.key, int) for order in self.order):
                    yield replace(self, items=self.items[:place] + self.items[place + 1 :])
        for name in ("items", "where", "group"):
            values = getattr(self, name)
            for place, value in enumerate(values):
                for part in value.parts:
                    if part.kind == value.kind or name == "items" and part.kind in ORDERED:
                        yield replace(self, **{name: (*values[:place], part, *values[place + 1 :])})
        for place, select in enumerate(self.source.inner):
            for less in select.shorter():
                if len(less.items) == len(select.items):
                    inner = (*self.source.inner[:place], less, *self.source.inner[place + 1 :])
                    yield replace(self, source=replace(self.source, inner=inner))

"""Expressions whose literals can become placeholders."""

from __future__ import annotations

import json
import re
from typing import Any

from expressions import Expressions
from terms import Expr


class Literals(Expressions):
    """Expressions whose literals can be told: `«-7|{"int": -7}»`."""

    def with_scope(self, scope: list[Expr]) -> Expressions:
        return Literals(self.random, scope, self.times_ns, self.has_nanoseconds)

    def literal(self, kind: str) -> Expr:
        drawn = super().literal(kind)
        if kind in ("time", "uint"):
            return drawn
        text = drawn.arc
        value = text[1:-1].replace("''", "'") if kind == "text" else {"true": True, "false": False}.get(text)
        if value is None:
            least = re.fullmatch(r"\((-\d+) - (\d+)\)", text)
            value = int(least[1]) - int(least[2]) if least else float(text) if "e" in text else int(text)
        return Expr(kind, f"«{text}|{json.dumps(value, ensure_ascii=False)}»", text)


LITERAL = re.compile("«([^|»]*)\\|([^»]*)»")


def with_literals(text: str) -> str:
    return LITERAL.sub(lambda found: found[1], text)


def with_placeholders(text: str) -> tuple[str, dict[str, Any]]:
    """The same literal is the same placeholder, so that a key stays one."""
    literals = dict.fromkeys(found[0] for found in LITERAL.finditer(text))
    names = {literal: f"p{place}" for place, literal in enumerate(literals)}
    values = {names[found[0]]: json.loads(found[2]) for found in LITERAL.finditer(text)}
    return LITERAL.sub(lambda found: f"${names[found[0]]}", text), values

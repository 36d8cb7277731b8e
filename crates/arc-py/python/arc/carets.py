"""Where in a statement an error is: the line with a caret under the place, as far as the message has one."""

from __future__ import annotations

import re
from typing import TypeVar

from arc.errors import Error, InvalidInputError, NotFoundError

T = TypeVar("T", bound=Error)

POSITION = re.compile(r"at Line: (\d+), Column: (\d+)")
NAMED = re.compile(r"No field named (\S+?)\.(?:\s|$)|table \"([^\"]+)\" does not exist|[Ii]nvalid function '([^']+)'")


def with_place(error: T, query: str) -> T:
    """Returns an error about a statement with a caret under the place, where that is known."""
    if isinstance(error, (InvalidInputError, NotFoundError)) and error.args and "\n\nLINE " not in str(error.args[0]):
        error.args = (pointed(str(error.args[0]), query),)
    return error


def pointed(message: str, sql: str) -> str:
    """Returns the message, and below it the line of the statement with a caret, if the place is known."""
    place = place_of(message, sql)
    if place is None:
        return message
    line, column = place
    text = sql.splitlines()[line - 1]
    head = f"LINE {line}: "
    shown = text.replace("\t", " ")
    return f"{message}\n\n{head}{shown}\n{' ' * (len(head) + column - 1)}^"


def place_of(message: str, sql: str) -> tuple[int, int] | None:
    """Returns the line and the column of an error, both from 1."""
    lines = sql.splitlines()
    found = POSITION.search(message)
    if found:
        line, column = int(found[1]), int(found[2])
        if 1 <= line <= len(lines) and 1 <= column <= len(lines[line - 1]) + 1:
            return line, column
        return None
    named = NAMED.search(message)
    if not named:
        return None
    name = next(group for group in named.groups() if group).split(".")[-1].strip('"')
    places = [
        (number, match.start() + 1)
        for number, text in enumerate(lines, 1)
        for match in re.finditer(rf"(?<![\w$]){re.escape(name)}(?![\w$])", text)
    ]
    # Of two places the right one is not known.
    return places[0] if len(places) == 1 else None

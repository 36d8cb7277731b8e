"""Known wrong answers of DataFusion, Arrow and the parser, with what the server answers instead.

Reads the files of `upstream/`, and never sends a statement. Each issue begins with `== ` and its
name, followed by a line that says what it is about. Then come, each under a line of its own:

- `points`: line protocol; `later`: points for another file; `execute`: one statement a line, that
  goes on in lines with two spaces in front;
- `right`, `repaired` with the file that does it (in `crates/arc-core/src/query`), `refused` or
  `wrong`: a statement in that state. After `----` stands the answer that is due: rows as JSON, a
  part of the error, or `an error` for any. A wrong statement has what comes after `---- comes`.
"""

from __future__ import annotations

import json
import pathlib
from dataclasses import dataclass, field

FOLDER = pathlib.Path(__file__).resolve().parent / "upstream"
# From the best to the worst.
STATES = ("right", "repaired", "refused", "wrong")
SECTIONS = ("points", "later", "execute")
# The first line of the table, which is the end of its page.
HEAD = "| issue | about | here |"


@dataclass
class Statement:
    """A statement with its state, the file that repairs it, and its answers."""

    state: str
    by: str = ""
    sql: str = ""
    due: str = ""
    comes: str = ""

    def expected(self) -> str:
        return self.comes if self.state == "wrong" else self.due

    def is_whole(self) -> bool:
        parts = (self.sql, self.due, self.state != "wrong" or self.comes)
        return all(parts) and (self.state == "repaired") == bool(self.by)


@dataclass
class Issue:
    """An issue with the points and statements that show it."""

    name: str
    about: str = ""
    sections: dict[str, list[str]] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)

    def order(self) -> tuple[str, int]:
        project, _, number = self.name.partition("#")
        return project, int(number)

    def here(self) -> str:
        """Returns the states of its statements, the worst first, each once."""
        states = {one.state for one in self.statements}
        files = sorted({f"`{one.by}`" for one in self.statements if one.by})
        texts = {"wrong": "**wrong**", "repaired": f"repaired by {', '.join(files)}"}
        return ", ".join(texts.get(state, state) for state in reversed(STATES) if state in states)


class Reader:
    """The issues of one file, read line by line; what stands above the first is for people."""

    def __init__(self) -> None:
        self.issues: list[Issue] = []
        self.section: list[str] = []
        self.part = ""

    def read(self, line: str) -> None:
        words = line.split()
        if line.startswith("== "):
            self.issues.append(Issue(words[1]))
        elif self.issues and not self.issues[-1].about:
            self.issues[-1].about = line
        elif self.issues and line in SECTIONS:
            self.section = self.issues[-1].sections.setdefault(line, [])
        elif self.issues and words and words[0] in STATES and len(words) <= 2:
            self.issues[-1].statements.append(Statement(*words))
            self.part = "sql"
        elif self.issues and self.issues[-1].statements:
            self.read_statement(line, self.issues[-1].statements[-1])
        elif self.issues and words:
            self.read_section(line)

    def read_section(self, line: str) -> None:
        if line.startswith("  ") and self.section:
            self.section[-1] += " " + line.strip()
        else:
            self.section.append(line)

    def read_statement(self, line: str, statement: Statement) -> None:
        if line.startswith("----"):
            self.part = line.removeprefix("----").strip() or "due"
        else:
            text = f"{getattr(statement, self.part)}\n{line}".strip()
            setattr(statement, self.part, text)


def parse(text: str) -> list[Issue]:
    reader = Reader()
    for line in text.splitlines():
        reader.read(line)
    return reader.issues


def read_all() -> list[Issue]:
    """Returns all issues by project and number; ends the process if one is not whole."""
    issues = [issue for path in sorted(FOLDER.glob("*.txt")) for issue in parse(path.read_text())]
    for issue in issues:
        if not issue.statements or not all(one.is_whole() for one in issue.statements):
            raise SystemExit(f"{issue.name}: a statement lacks a part")
    names = [issue.name for issue in issues]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise SystemExit(f"more than once: {', '.join(doubled)}")
    return sorted(issues, key=Issue.order)


def is_answer(expected: str, status: int, body: str) -> bool:
    """Returns whether a response has the rows, or the error, that is expected."""
    answer = json.loads(body)
    if expected.startswith("["):
        return status == 200 and bool(answer["data"] == json.loads(expected))
    return status == 400 and (expected == "an error" or expected in str(answer["error"]))


def table(issues: list[Issue]) -> str:
    rows = [f"| {issue.name} | {issue.about} | {issue.here()} |" for issue in issues]
    return "\n".join([HEAD, "| --- | --- | --- |", *rows]) + "\n"

#!/usr/bin/env python3
"""Sends the release server the statements of known wrong answers of the libraries below it.

    python scripts/reliability/upstream.py                 all of them
    python scripts/reliability/upstream.py --only 24960    those of one issue
    python scripts/reliability/upstream.py --write         and renews the table of docs/upstream.md

The issues are in `upstream/`, in the form of `known_issues.py`. Each statement runs on unflushed
rows and on files, and several times, because partitions exchange bounds while they run.

Ends with status 1 if a statement has another answer than its file says, or the page another table.
After an upgrade of DataFusion, Arrow or the parser, each such statement is decided anew.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import sys
import tempfile

from known_issues import HEAD, STATES, Issue, Statement, is_answer, read_all, table
from server import ROOT, Server

PAGE = ROOT / "docs" / "upstream.md"
# How often a statement is sent. A wrong one may be right in some of its runs.
RUNS = 3
WRONG_RUNS = 30


class Round:
    """All issues on one server, each in a database of its own."""

    def __init__(self, server: Server, issues: list[Issue]) -> None:
        self.server, self.issues = server, issues
        self.changed_count = 0

    def run(self) -> None:
        several_files = [issue for issue in self.issues if "later" in issue.sections]
        for issue in several_files:
            self.prepare(issue)
        self.flush()
        for issue in several_files:
            self.write(issue, "later")
        self.flush()
        for issue in self.issues:
            if issue not in several_files:
                self.prepare(issue)
        for layout in ("unflushed", "from files"):
            for issue in self.issues:
                for statement in issue.statements:
                    self.check(issue, statement, layout)
            self.flush()

    def prepare(self, issue: Issue) -> None:
        self.write(issue, "points")
        for statement in issue.sections.get("execute", []):
            self.expect(200, self.query(issue, statement), statement)

    def write(self, issue: Issue, section: str) -> None:
        lines = "\n".join(issue.sections.get(section, []))
        if lines:
            self.expect(204, self.post("/write", lines.encode(), issue), issue.name)

    def flush(self) -> None:
        answer = self.server.request("POST", "/api/v1/write/line-protocol/flush")
        self.expect(200, (answer[0], answer[1].decode()), "flush")

    def expect(self, status: int, answer: tuple[int, str], what: str) -> None:
        if answer[0] != status:
            raise RuntimeError(f"{what}: {answer[0]} {answer[1]}")

    def post(self, path: str, body: bytes, issue: Issue) -> tuple[int, str]:
        database = re.sub("[^a-z0-9]", "_", issue.name)
        status, answer = self.server.request("POST", path, body, x_arc_database=database)
        return status, answer.decode()

    def query(self, issue: Issue, sql: str) -> tuple[int, str]:
        return self.post("/api/v1/query", json.dumps({"sql": sql}).encode(), issue)

    def check(self, issue: Issue, statement: Statement, layout: str) -> None:
        """Sends a statement until its answer is another one, or the wrong one that is known."""
        is_wrong, status, body = statement.state == "wrong", 0, "{}"
        for _ in range(WRONG_RUNS if is_wrong else RUNS):
            status, body = self.query(issue, statement.sql)
            if is_answer(statement.expected(), status, body) == is_wrong:
                break
        if is_answer(statement.expected(), status, body):
            return
        self.changed_count += 1
        answer = json.loads(body)
        text = json.dumps(answer["data"]) if status == 200 else str(answer["error"])
        mended = ", which is right" if is_wrong and is_answer(statement.due, status, body) else ""
        print(f"CHANGED {issue.name}, {layout}: {issue.about}")
        print(f"  {statement.sql}")
        print(f"  is {statement.state}, with {statement.expected()}")
        print(f"  now comes {status}: {text[:500]}{mended}", flush=True)


def is_page_current(issues: list[Issue], write: bool) -> bool:
    """Returns whether the page ends with the table of these issues; writes it there if asked."""
    text = PAGE.read_text()
    wanted = text[: text.index(HEAD)] + table(issues)
    if write:
        PAGE.write_text(wanted)
    return write or text == wanted


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="issues whose name has this pattern")
    parser.add_argument("--write", action="store_true", help="write the table of docs/upstream.md")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    issues = read_all()
    chosen = [issue for issue in issues if re.search(options.only, issue.name)]
    with tempfile.TemporaryDirectory(prefix="arc-upstream-") as folder:
        server = Server(pathlib.Path(folder) / "data", flush_after="1h", compaction="false")
        try:
            server.wait_until_ready()
            checks = Round(server, chosen)
            checks.run()
        finally:
            server.kill()
    states = [one.state for issue in chosen for one in issue.statements]
    counts = ", ".join(f"{states.count(state)} {state}" for state in STATES)
    print(table(chosen))
    print(f"{len(chosen)} issues, {len(states)} statements: {counts}")
    print(f"{checks.changed_count} answers changed")
    is_current = is_page_current(issues, options.write)
    if not is_current:
        print("docs/upstream.md has another table; --write writes this one")
    return 1 if checks.changed_count or not is_current else 0


if __name__ == "__main__":
    sys.exit(main())

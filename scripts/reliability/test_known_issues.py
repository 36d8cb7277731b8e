"""The files of known wrong answers are whole, and the page has their table."""

from __future__ import annotations

import json

from known_issues import is_answer, parse, read_all, table
from server import ROOT

ISSUE = """For people.

== a/b#7
lists
points
m v=1i 1
execute
INSERT INTO m
  VALUES (1)

wrong
SELECT v
FROM m
----
[[1]]
---- comes
[]

repaired lists.rs
SELECT 2
----
an error
"""


def test_the_page_ends_with_the_table_of_all_issues() -> None:
    assert (ROOT / "docs" / "upstream.md").read_text().endswith("\n\n" + table(read_all()))


def test_an_issue_has_its_points_and_statements() -> None:
    (issue,) = parse(ISSUE)
    wrong, repaired = issue.statements
    assert issue.sections == {"points": ["m v=1i 1"], "execute": ["INSERT INTO m VALUES (1)"]}
    assert (wrong.sql, wrong.due, wrong.expected()) == ("SELECT v\nFROM m", "[[1]]", "[]")
    assert (repaired.by, repaired.expected()) == ("lists.rs", "an error")
    assert issue.here() == "**wrong**, repaired by `lists.rs`"


def test_an_answer_is_its_rows_or_its_error() -> None:
    rows, error = json.dumps({"data": [[1, None]]}), json.dumps({"error": "LIMIT is not known"})
    assert is_answer("[[1, null]]", 200, rows)
    assert not is_answer("[[1, null]]", 400, error)
    assert is_answer("LIMIT", 400, error) and is_answer("an error", 400, error)
    assert not is_answer("OFFSET", 400, error) and not is_answer("an error", 500, error)

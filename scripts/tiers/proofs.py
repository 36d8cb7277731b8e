"""The rows of docs/proof.md: of each section of the proof when it last ran, and what it came to."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from tiers.runner import ROOT, Outcome, git
from tiers.sections import PROOF, Section

PAGE = ROOT / "docs" / "proof.md"
COLUMNS = ("section", "commit", "day", "seed", "seconds", "result")
NEVER = 1_000_000
"""The age of what never ran."""


@dataclass
class Row:
    section: str
    commit: str = "never"
    day: str = ""
    seed: str = ""
    seconds: str = ""
    result: str = ""

    def __str__(self) -> str:
        cells = (self.section, self.commit, self.day, self.seed, self.seconds, self.result)
        return f"| {' | '.join(cells)} |"


def rows() -> dict[str, Row]:
    found: dict[str, Row] = {}
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if (
            line.startswith("|")
            and len(cells) == len(COLUMNS)
            and cells[0] != "section"
            and not cells[0].startswith("--")
        ):
            found[cells[0]] = Row(*cells)
    return found


def age(section: Section) -> int:
    """Returns how many commits were made since the section ran."""
    row = rows().get(section.name)
    count = (
        git("rev-list", "--count", f"{row.commit.rstrip('+')}..HEAD")
        if row and row.commit != "never"
        else ""
    )
    return int(count) if count else NEVER


def record(outcome: Outcome, seed: str) -> None:
    """Writes the row of a section that has run."""
    dirty = "+" if git("status", "--porcelain", "--", ".", ":!docs/proof.md") else ""
    result = "failed" if outcome.failed else f"{outcome.passed} passed"
    if outcome.skipped:
        result += f", {len(outcome.skipped)} skipped"
    row = Row(
        outcome.section.name,
        git("rev-parse", "--short=10", "HEAD") + dirty,
        datetime.date.today().isoformat(),
        seed,
        f"{outcome.wall_s:.0f}",
        result,
    )
    lines = PAGE.read_text().splitlines()
    lines = [str(row) if line.startswith(f"| {row.section} |") else line for line in lines]
    PAGE.write_text("\n".join(lines) + "\n")


def describe() -> int:
    """Prints how old the proof of each section is; returns how many rows or sections stand alone."""
    there = rows()
    names = [section.name for section in PROOF]
    print("=== the proof (docs/proof.md), in commits since each section ran")
    for section in PROOF:
        row, commits = there.get(section.name), age(section)
        told = (
            f"{row.result}, {commits} commits ago"
            if row and commits < NEVER
            else "never ran, or not in this history"
        )
        print(f"    {section.name}: {told}")
    wrong = [f"{name} has no row in docs/proof.md" for name in names if name not in there]
    wrong += [
        f"docs/proof.md has a row {name}, and there is no such section"
        for name in there
        if name not in names
    ]
    print("\n".join(wrong), end="\n" if wrong else "")
    return len(wrong)

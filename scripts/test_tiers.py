"""The runner of both tiers: what it counts, when it ends a section, which sections a change concerns."""

import re
import subprocess
import time
from pathlib import Path

import pytest
from tiers import proofs, runner
from tiers.ages import Ages
from tiers.sections import LANDING, PROOF, Section

CLOSING_LINES = [
    ("test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured", (5, 0, 0)),
    ("test result: FAILED. 3 passed; 2 failed; 0 ignored", (3, 2, 0)),
    (
        "     Summary [ 9.2s] 6 tests run: 3 passed (1 slow), 1 failed, 2 timed out, 4 skipped",
        (3, 3, 0),
    ),
    ("     Summary [ 0.1s] 1 test run: 1 passed, 0 skipped", (1, 0, 0)),
    ("435 passed, 1 skipped in 480.91s (0:08:00)", (435, 0, 0)),
    ("1 failed, 90 passed, 19 deselected, 2 errors in 63.69s", (90, 3, 0)),
    ("SKIPPED [2] tests/test_a.py:3: there is no moto", (0, 0, 2)),
    ("SKIPPED: Node.js is missing", (0, 0, 1)),
    ("12 passed the door in 3 s", (0, 0, 0)),
]


@pytest.mark.parametrize(("line", "counts"), CLOSING_LINES)
def test_closing_lines_are_counted(line: str, counts: tuple[int, int, int]) -> None:
    outcome = runner.Outcome(LANDING[0])
    outcome.count(line)
    assert (outcome.passed, outcome.failed, len(outcome.skipped)) == counts


def write_sections(monkeypatch: pytest.MonkeyPatch, root: Path, script: str) -> None:
    sections = root / "scripts" / "sections"
    sections.parent.mkdir()
    sections.write_text(f"#!/bin/sh\n{script}\n")
    sections.chmod(0o755)
    monkeypatch.setattr(runner, "ROOT", root)


def run(monkeypatch: pytest.MonkeyPatch, root: Path, script: str, seconds: float) -> runner.Outcome:
    """Runs a section that is this script, for so long at most."""
    write_sections(monkeypatch, root, script)
    return runner.run(Section("trial", 1), runner.environment(), time.monotonic() + seconds)


@pytest.mark.parametrize(
    ("script", "counts"),
    [
        ("true", (1, 0)),
        ("false", (0, 1)),
        ("echo '7 passed in 1.0s'", (7, 0)),
        # Whatever was counted, a section that ends badly has failed.
        ("echo '7 passed in 1.0s'; exit 3", (7, 1)),
    ],
)
def test_the_exit_status_decides(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, counts: tuple[int, int]
) -> None:
    outcome = run(monkeypatch, tmp_path, script, 60)
    assert (outcome.passed, outcome.failed) == counts


def test_a_section_that_hangs_is_ended_and_has_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    outcome = run(monkeypatch, tmp_path, "sleep 600 & sleep 600", 0.5)
    assert outcome.failed == 1 and "limit" in outcome.reason
    outcome = runner.run(Section("late", 1), {}, time.monotonic() - 1)
    assert outcome.failed == 1 and outcome.reason == "no time"


def test_a_report_ends_with_what_failed_sections_printed_last(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = run(monkeypatch, tmp_path, "seq 1000 1999; echo 'FAILED test_a'; exit 1", 60)
    good = runner.Outcome(Section("good", 1), passed=1)
    capsys.readouterr()
    assert runner.report([outcome, good]) == 1
    printed = capsys.readouterr().out
    assert "how trial ended" in printed and "1999\nFAILED test_a\n" in printed
    assert "1000" not in printed and "how good" not in printed


def test_the_second_lane_begins_after_the_build_and_prints_whole_sections(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Each of the two that run beside each other waits for the other.
    script = """
        cd "$(dirname "$0")"
        case "$1" in
        build) touch built ;;
        tests) touch tests; while [ ! -e python ]; do sleep 0.01; done; echo "7 passed in 1.0s" ;;
        python) [ -e built ] && touch python; while [ ! -e tests ]; do sleep 0.01; done; echo aside ;;
        answers) exit 1 ;;
        esac
    """
    write_sections(monkeypatch, tmp_path, script)
    sections = [
        Section("build", 1),
        Section("tests", 1),
        Section("python", 1, beside=True),
        Section("answers", 1, beside=True),
    ]
    outcomes = list(runner.run_all(sections, runner.environment(), time.monotonic() + 60))
    assert {outcome.section.name: outcome.passed for outcome in outcomes} == {
        "build": 1,
        "tests": 7,
        "python": 1,
        "answers": 0,
    }
    printed = capsys.readouterr().out
    assert "\n=== python\naside\n=== python: 1 passed" in printed and "answers: 0 passed" in printed


def test_an_interrupted_run_ends_both_lanes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write_sections(monkeypatch, tmp_path, 'if [ "$1" = tests ]; then exit 0; fi; sleep 600')
    start = subprocess.Popen

    def start_late(command: list[str], **options: object) -> subprocess.Popen[str]:
        # The interruption comes while the second lane is about to start its process.
        if command[-1] == "python":
            time.sleep(0.5)
        return start(command, **options)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(subprocess, "Popen", start_late)
    sections = [Section("python", 1, beside=True), Section("tests", 1), Section("never", 1)]
    # Not ended, they would go on to the limit of this section.
    outcomes = runner.run_all(sections, runner.environment(), time.monotonic() + 600)
    assert next(outcomes).section.name == "tests"
    with pytest.raises(KeyboardInterrupt):
        outcomes.throw(KeyboardInterrupt)
    assert not runner.running


@pytest.mark.parametrize(
    ("changed", "concerned", "spared"),
    [
        ("crates/arc-lp/src/lib.rs", {"lint", "lp-fuzz", "tests", "clients"}, {"console", "deny"}),
        ("crates/arc-server/src/app.rs", {"clients", "reliability"}, {"lp-fuzz", "core-alone"}),
        ("docs/sql.md", {"features"}, {"lint", "tests"}),
        ("scripts/sections", {section.name for section in LANDING}, set[str]()),
    ],
)
def test_a_change_concerns_what_it_can_break(
    changed: str, concerned: set[str], spared: set[str]
) -> None:
    chosen = {section.name for section in LANDING if section.is_concerned([changed])}
    assert concerned <= chosen and not chosen & spared


def test_a_row_says_what_a_section_came_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = tmp_path / "proof.md"
    page.write_text("".join(f"{proofs.Row(section.name)}\n" for section in PROOF))
    monkeypatch.setattr(proofs, "PAGE", page)
    assert proofs.age(PROOF[0]) == proofs.NEVER and proofs.describe() == 0
    outcome = runner.Outcome(PROOF[0], passed=3, wall_s=12)
    proofs.record(outcome, "17")
    row = proofs.rows()[PROOF[0].name]
    assert (row.seed, row.seconds, row.result) == ("17", "12", "3 passed")
    page.write_text(page.read_text() + f"{proofs.Row('forgotten')}\n")
    assert proofs.describe() == 1


def clone(root: Path, contents: dict[str, str]) -> Path:
    """Makes a repository with these files."""
    for name, content in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    for arguments in (["init", "--quiet"], ["add", "."]):
        subprocess.run(["git", *arguments], cwd=root, check=True)
    return root


def build(root: Path, target: Path) -> dict[str, int]:
    """Does what a run does; returns the times of its files."""
    ages = Ages(root, target)
    ages.set()
    built = target / "debug" / ".fingerprint" / "unit"
    built.mkdir(parents=True, exist_ok=True)
    (built / "stamp").touch()
    ages.close()
    return {path.name: path.stat().st_mtime_ns for path in root.iterdir() if path.is_file()}


def test_only_what_differs_from_the_last_clone_is_young(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    first = build(clone(tmp_path / "1", {"a": "1", "b": "1"}), target)
    second = build(clone(tmp_path / "2", {"a": "1", "b": "2", "c": "1"}), target)
    assert second["a"] == first["a"]
    assert min(second["b"], second["c"]) > first["b"]
    # What was there before is not what was built last.
    third = build(clone(tmp_path / "3", {"a": "1", "b": "1", "c": "1"}), target)
    assert third["b"] > second["b"] and third["c"] == second["c"]


@pytest.mark.parametrize("how", ["another has built", "the run broke off", "the page is gone"])
def test_all_is_young_where_it_is_not_known_what_was_built(tmp_path: Path, how: str) -> None:
    target = tmp_path / "target"
    target.mkdir()
    first = build(clone(tmp_path / "1", {"a": "1"}), target)
    if how == "another has built":
        (target / "debug" / ".fingerprint" / "unit" / "stamp").touch()
    elif how == "the run broke off":
        Ages(tmp_path / "1", target).set()
    else:
        (target / "ages.json").unlink()
    assert build(clone(tmp_path / "2", {"a": "1"}), target)["a"] > first["a"]


def test_cargo_takes_what_an_earlier_clone_has_built(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    crate = {
        "Cargo.toml": "[workspace]\nmembers = ['a']\n",
        "a/Cargo.toml": "[package]\nname = 'a'\n",
    }

    def state(name: str, source: str) -> str:
        root = clone(tmp_path / name, crate | {"a/src/lib.rs": source})
        ages = Ages(root, target)
        ages.set()
        command = ["cargo", "build", "--verbose", "--target-dir", str(target)]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
        ages.close()
        found: list[str] = re.findall(r"(Compiling|Dirty|Fresh) a v", done.stderr)
        return found[0]

    sources = ["", "", "pub fn a() {}\n", "", ""]
    states = [state(str(number), source) for number, source in enumerate(sources)]
    assert states == ["Compiling", "Fresh", "Dirty", "Dirty", "Fresh"]


BUILT_IN = re.compile(r'env!\("CARGO_MANIFEST_DIR"\)|include_(?:str|bytes)!\(\s*"([^"]+)"')


def test_what_is_built_does_not_know_the_clone_that_it_was_built_in() -> None:
    """A later clone takes it as it is. Tests run in the folder of their crate, and can read files there."""
    for crate in [*(runner.ROOT / "crates").iterdir(), runner.ROOT / "benches", runner.ROOT / "examples"]:
        for path in crate.rglob("*.rs"):
            for line in path.read_text().splitlines():
                found = BUILT_IN.search(line)
                # The README is a test of the documentation, which is built each time.
                if found and "README.md" not in line:
                    assert found[1], f"{path}: {line.strip()}"
                    assert (path.parent / found[1]).resolve().is_relative_to(crate), f"{path}: {line.strip()}"

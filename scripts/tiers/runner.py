"""Runs sections in one lane or two: their limits, their counts, and what is printed about them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from tiers.sections import Section

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
TARGET = (ROOT / os.environ.get("CARGO_TARGET_DIR", "target")).resolve()
FREE_GIB = 6
"""Space that a run needs beside what is built already."""

CARGO = re.compile(r"^test result: \w+\. (?P<passed>\d+) passed; (?P<failed>\d+) failed")
NEXTEST = re.compile(r"^ *Summary \[.*\] .*tests? run: (?P<passed>\d+) passed")
NEXTEST_FAILED = re.compile(r"(\d+) (?:failed|timed out|exec failed)")
PYTEST = re.compile(r"^=* ?(?:\d+ [a-z]+, )*\d+ [a-z]+ in [0-9.]+s")
ENDING_LINES, ENDING_WIDTH = 40, 400
"""What is printed again, at the very end, of a section that failed."""
SKIPPED = re.compile(r"^SKIPPED(?:: | \[(?P<count>\d+)\] )(?P<reason>.*)")


def stop(problem: str) -> NoReturn:
    """Ends the run before it has begun: what is wrong is the machine, not the change."""
    print(f"{Path(sys.argv[0]).name}: {problem}", file=sys.stderr)
    sys.exit(2)


@dataclass
class Outcome:
    """What a section came to."""

    section: Section
    passed: int = 0
    failed: int = 0
    skipped: list[str] = field(default_factory=list)
    wall_s: float = 0
    cpu_s: float = 0
    reason: str = ""
    ending: deque[str] = field(default_factory=lambda: deque(maxlen=ENDING_LINES))

    def count(self, line: str) -> None:
        """Adds what a closing line of cargo, nextest or pytest counts."""
        if found := SKIPPED.match(line):
            self.skipped += [found["reason"]] * int(found["count"] or 1)
        elif found := CARGO.match(line):
            self.passed += int(found["passed"])
            self.failed += int(found["failed"])
        elif found := NEXTEST.match(line):
            self.passed += int(found["passed"])
            self.failed += sum(map(int, NEXTEST_FAILED.findall(line)))
        elif PYTEST.match(line):
            counts = {
                word.rstrip("s"): int(number)
                for number, word in re.findall(r"(\d+) ([a-z]+)", line)
            }
            self.passed += counts.get("passed", 0)
            self.failed += counts.get("failed", 0) + counts.get("error", 0)

    def close(self, status: int) -> None:
        """Counts a section without counts as one test; one that ends badly has failed."""
        if status != 0 and self.failed == 0:
            self.failed = 1
            self.reason = self.reason or f"exit status {status}"
        if self.passed + self.failed == 0:
            self.passed = 1

    def __str__(self) -> str:
        budget = f"{self.wall_s:.0f} s of {self.section.budget_s}, {self.cpu_s:.0f} CPU s"
        slow = ", over its budget" if self.wall_s > 1.5 * self.section.budget_s else ""
        reason = f" ({self.reason})" if self.reason else ""
        counts = f"{self.passed} passed, {self.failed} failed{reason}"
        return f"{self.section.name}: {counts}, {budget}{slow}"


running: set[subprocess.Popen[str]] = set()
"""The sections that run now."""
interrupted = threading.Event()
"""Set where those are ended: one that has just been started by the other lane ends itself."""


def run_all(
    sections: list[Section], environment: dict[str, str], until: float
) -> Iterator[Outcome]:
    """Runs sections in their order, but those that stand beside others in a lane of their own.

    That lane begins once `build` has run. What it prints comes out a section at a time.
    """
    interrupted.clear()
    own = [section for section in sections if not section.beside]
    names = [section.name for section in own]
    first = names.index("build") + 1 if "build" in names else 0
    texts: list[str] = []

    def aside(section: Section) -> Outcome:
        lines: list[str] = []
        outcome = run(section, environment, until, lines.append)
        texts.append("".join(lines))
        return outcome

    def told(outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        for outcome in outcomes:
            while texts:
                show(texts.pop(0))
            yield outcome

    with ThreadPoolExecutor(1) as lane:
        try:
            yield from (run(section, environment, until) for section in own[:first])
            second = [lane.submit(aside, section) for section in sections if section.beside]
            yield from told(run(section, environment, until) for section in own[first:])
            yield from told(future.result() for future in second)
        except BaseException:
            lane.shutdown(wait=False, cancel_futures=True)
            interrupted.set()
            for process in list(running):
                end_group(process)
            raise


def show(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def run(
    section: Section,
    environment: dict[str, str],
    until: float,
    write: Callable[[str], object] = show,
) -> Outcome:
    """Runs a section with its limit, or until the whole run is over, and writes what it prints."""
    outcome = Outcome(section)
    limit_s = min(section.time_limit_s, until - time.monotonic())
    write(f"\n=== {section.name}\n")
    if limit_s <= 0:
        outcome.reason = "no time"
        outcome.close(1)
        return outcome
    began = time.monotonic()
    command = [str(ROOT / "scripts" / "sections"), section.name]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )

    def end() -> None:
        outcome.reason = f"ended after its limit of {limit_s:.0f} s"
        end_group(process)

    timer = threading.Timer(limit_s, end)
    timer.start()
    running.add(process)
    if interrupted.is_set():
        end_group(process)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            write(line)
            outcome.count(line.rstrip("\n"))
            outcome.ending.append(line.rstrip("\n"))
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    except BaseException:
        end_group(process)
        raise
    finally:
        timer.cancel()
        running.discard(process)
    outcome.wall_s, outcome.cpu_s = time.monotonic() - began, used.ru_utime + used.ru_stime
    outcome.close(1 if outcome.reason else process.returncode)
    write(f"=== {outcome}\n")
    return outcome


def end_group(process: subprocess.Popen[str]) -> None:
    """Ends a section with all that it has started."""
    for signal_number, pause_s in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 0.0)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal_number)
        if pause_s:
            time.sleep(pause_s)


def environment(**more: str) -> dict[str, str]:
    """Returns what sections run with, without settings of the server, which refuses unknown ones."""
    names = {name: value for name, value in os.environ.items() if not name.startswith("ARC_")}
    names.setdefault("CARGO_TERM_COLOR", "never")
    names["CARGO_TARGET_DIR"] = str(TARGET)
    names["PATH"] = f"{VENV / 'bin'}{os.pathsep}{names['PATH']}"
    return {**names, **more}


def prepare() -> None:
    """Checks the machine, and leaves .venv with what scripts/requirements.txt names."""
    for tool, advice in (
        ("cargo", "Rust is missing; get it from https://rustup.rs"),
        ("cc", "a C compiler is missing (Debian: build-essential; macOS: xcode-select --install)"),
        ("git", "git is missing"),
    ):
        if shutil.which(tool) is None:
            stop(advice)
    python = os.environ.get("PYTHON", sys.executable)
    version = subprocess.run(
        [python, "-c", "import sys; print(*sys.version_info[:2])"],
        capture_output=True,
        text=True,
        check=False,
    )
    if version.returncode != 0 or tuple(map(int, version.stdout.split())) < (3, 10):
        stop(f"{python} is no Python 3.10 or newer; PYTHON can name one")
    TARGET.mkdir(parents=True, exist_ok=True)
    free_gib = shutil.disk_usage(TARGET).free / 2**30
    if free_gib < FREE_GIB:
        stop(f"{TARGET} has {free_gib:.1f} GiB free, a run needs {FREE_GIB}")
    files = [ROOT / "scripts" / name for name in ("requirements.txt", "requirements.lock")]
    stamp = version.stdout + "".join(file.read_text() for file in files)
    if (VENV / "stamp").is_file() and (VENV / "stamp").read_text() == stamp:
        return
    print("Installing what the tests need into .venv", flush=True)
    if subprocess.run([python, "-m", "venv", "--clear", VENV], check=False).returncode != 0:
        stop("no virtual environment (Debian: apt install python3-venv)")
    # What the lock names was resolved for Python 3.11; older ones take what they can have.
    is_locked = tuple(map(int, version.stdout.split())) >= (3, 11)
    pip = [
        str(VENV / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    pip += ["--requirement", str(files[0]), *(["--constraint", str(files[1])] if is_locked else [])]
    if subprocess.run(pip, check=False).returncode != 0:
        stop("pip could not install scripts/requirements.txt; is there a network?")
    (VENV / "stamp").write_text(stamp)


def alone() -> object:
    """Waits until no other run uses the folder of what is built; returns what holds it."""
    lock = (TARGET / ".test-lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"another run uses {TARGET}; waiting for it", flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def report(outcomes: list[Outcome]) -> int:
    """Prints what a run came to; returns its exit status."""
    print("\n=== seconds by section")
    for outcome in outcomes:
        print(f"    {outcome}")
    passed = sum(outcome.passed for outcome in outcomes)
    failed = sum(outcome.failed for outcome in outcomes)
    reasons = [
        f"{outcome.section.name}: {reason}" for outcome in outcomes for reason in outcome.skipped
    ]
    for reason in reasons:
        print(f"skipped: {reason}")
    broken = [outcome for outcome in outcomes if outcome.failed]
    for outcome in broken:
        # Who sees the end of a log alone has to find there what failed.
        print(f"\n=== how {outcome.section.name} ended")
        print("\n".join(line[:ENDING_WIDTH] for line in outcome.ending))
    if broken:
        print(
            "failed: "
            + ", ".join(
                outcome.section.name + (f" ({outcome.reason})" if outcome.reason else "")
                for outcome in broken
            )
        )
    skipped = f", {len(reasons)} skipped" if reasons else ""
    print(f"{passed} passed, {failed} failed{skipped}", flush=True)
    return 1 if broken else 0

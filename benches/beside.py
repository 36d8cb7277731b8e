"""What the suites of others share: a server to ask, how answers are compared, and what an answer took."""
import json
import math
import os
import re
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

FILES_REST_S = 15
# The days of the rows are over, and nothing else comes: their files are merged at once instead of an hour later.
SETTINGS = ["--compaction-quiet", "1s"]
# Sums of floats differ by the order in which they are added.
TOLERANCE = 1e-9


def positive(text):
    """Reads an argument that is a number of something."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def server_program(text):
    """Reads an argument that names the server, which has to be there before anything else is made."""
    path = Path(text).resolve()
    if not path.is_file():
        sys.exit(f"{path} is not there; `cargo build --release -p arc-server` makes it, --program names another")
    return path


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def first_processors(threads):
    return sorted(os.sched_getaffinity(0))[:threads]


class Refused(SystemExit):
    """A statement that was not answered: the end, unless somebody goes on with the next one."""


class Arc:
    """A server on a data directory, which it keeps."""

    name = "Arc"

    def __init__(self, folder, program, threads, database="default"):
        self.folder, self.program, self.database = folder, program, database
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        processors = first_processors(threads)
        self.process = subprocess.Popen([program, "serve", "--no-auth", "--data-dir", folder / "arc", "--http", f"127.0.0.1:{port}",
                                         "--log-level", "warn", *SETTINGS], preexec_fn=lambda: os.sched_setaffinity(0, processors))
        while not self.is_ready():
            if self.process.poll() is not None:
                sys.exit(f"the server ended with {self.process.returncode}")
            time.sleep(0.05)

    def is_ready(self):
        try:
            urllib.request.urlopen(f"{self.url}/ready", timeout=60).close()
            return True
        except OSError:
            return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    @property
    def pid(self):
        return self.process.pid

    def most_memory_mb(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1000

    def load(self, table, path, *options, rest=FILES_REST_S):
        """Imports a file once, and waits until its files have been the same for so many seconds."""
        loaded = self.folder / "loaded"
        if not loaded.exists():
            subprocess.run([self.program, "import", "--url", self.url, "--table", table, *options, path], check=True)
            loaded.write_text(json.dumps(self.rest(rest)))

    def rest(self, seconds=FILES_REST_S):
        """Puts all rows into files, and waits until these have been the same for so many seconds; returns what `SHOW TABLES` says."""
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/api/v1/write/line-protocol/flush", b""), timeout=600).close()
        files, since = None, time.monotonic()
        while time.monotonic() - since < seconds:
            time.sleep(min(1, seconds))
            now = self.ask("SHOW TABLES").to_pylist()
            if now != files:
                files, since = now, time.monotonic()
        return files

    def fetch(self, sql):
        request = urllib.request.Request(f"{self.url}/api/v1/query?format=arrow&database={self.database}", json.dumps({"sql": sql}).encode())
        try:
            with urllib.request.urlopen(request, timeout=600) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            raise Refused(f"{sql}\n{error.read().decode()}") from error

    def ask(self, sql):
        import pyarrow
        with pyarrow.ipc.open_stream(self.fetch(sql)) as stream:
            return stream.read_all()


def is_same(one, other):
    if isinstance(one, float) or isinstance(other, float):
        return math.isclose(one, other, rel_tol=TOLERANCE)
    return one == other


def plain(column):
    """Returns a column with the type of its kind: texts, whole numbers, floats without NaN, or nanoseconds since 1970."""
    import pyarrow
    import pyarrow.compute
    kind = column.type
    if pyarrow.types.is_dictionary(kind):
        return plain(column.cast(kind.value_type))
    if pyarrow.types.is_timestamp(kind):
        return column.cast(pyarrow.timestamp("ns", kind.tz)).cast(pyarrow.int64())
    if pyarrow.types.is_boolean(kind) or pyarrow.types.is_integer(kind) or (pyarrow.types.is_decimal(kind) and kind.scale == 0):
        return column.cast(pyarrow.int64())
    if pyarrow.types.is_floating(kind) or pyarrow.types.is_decimal(kind):
        column = column.cast(pyarrow.float64())
        # What has no value is null to some and NaN to others.
        return pyarrow.compute.if_else(pyarrow.compute.is_nan(column), pyarrow.scalar(None, pyarrow.float64()), column)
    return column.cast(pyarrow.string())


def in_order(table):
    """Returns the columns in plain types, by position, their rows sorted: floats are looked at last, as they may differ by a little."""
    import pyarrow
    columns = [plain(column) for column in table.columns]
    table = pyarrow.table({str(at): column for at, column in enumerate(columns)})
    floats = [pyarrow.types.is_floating(column.type) for column in columns]
    keys = sorted(range(len(columns)), key=lambda at: (floats[at], at))
    return table.sort_by([(str(at), "ascending") for at in keys]).combine_chunks()


def difference(found, expected):
    """Says how a table differs from the one that is expected in any order of rows; nothing if it does not."""
    import numpy
    if (found.num_rows, found.num_columns) != (expected.num_rows, expected.num_columns):
        return f"{found.num_rows} rows of {found.num_columns} columns instead of {expected.num_rows} of {expected.num_columns}"
    names = found.column_names
    if sorted(names) == sorted(expected.column_names):
        expected = expected.select(names)
    found, expected = in_order(found), in_order(expected)
    for name, one, other in zip(names, found.columns, expected.columns):
        if "double" in (str(one.type), str(other.type)):
            ours, theirs = (column.cast("double").to_numpy() for column in (one, other))
            wrong = ~numpy.isclose(ours, theirs, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
        elif one.equals(other):
            continue
        else:
            wrong = numpy.array([a != b for a, b in zip(one.to_pylist(), other.to_pylist())])
        if wrong.any():
            at = int(wrong.argmax())
            return f"{name}: {one[at]} instead of {other[at]}, {wrong.sum()} of {len(wrong)} rows"
    return None


def measured(work, process, rounds, choose=min):
    """Returns the milliseconds that it took, and those of processors that the process took for it, each as chosen of the rounds."""
    # The clock of a process, as clock_getcpuclockid makes it.
    clock = (~process << 3) | 2
    took = []
    for _ in range(rounds):
        began, cpu = time.perf_counter(), time.clock_gettime(clock)
        work()
        took.append((1000 * (time.perf_counter() - began), 1000 * (time.clock_gettime(clock) - cpu)))
    return [choose(column) for column in zip(*took)]


def median(work, process, rounds):
    return measured(work, process, rounds, statistics.median)


def mean(ratios):
    """Returns the geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan

"""The programs of TSBS, and of a peer that is a Go module: built once, from the modules as they are published."""
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

TSBS = "github.com/timescale/tsbs", "v0.0.0-20230921131859-37fced794d56"
VICTORIA = "github.com/VictoriaMetrics/VictoriaMetrics", "v1.148.8"
PROGRAMS = ["tsbs_generate_data", "tsbs_generate_queries", "tsbs_load_influx", "tsbs_load_questdb"]
SEED = "123"
BEGIN = "2016-01-01T00:00:00Z"
# To the end of that month.
MOST_HOURS = 743
TYPES = {
    "cpu-only": ["single-groupby-1-1-1", "single-groupby-1-1-12", "single-groupby-1-8-1", "single-groupby-5-1-1", "single-groupby-5-1-12",
                 "single-groupby-5-8-1", "cpu-max-all-1", "cpu-max-all-8", "double-groupby-1", "double-groupby-5", "double-groupby-all",
                 "high-cpu-all", "high-cpu-1", "lastpoint", "groupby-orderby-limit"],
    "iot": ["last-loc", "single-last-loc", "low-fuel", "high-load", "stationary-trucks", "long-driving-sessions", "long-daily-sessions",
            "avg-vs-projected-fuel-consumption", "avg-daily-driving-duration", "avg-daily-driving-session", "avg-load", "daily-activity",
            "breakdown-frequency"],
}
TYPES["devops"] = TYPES["cpu-only"]


def build(folder, module, packages):
    """Leaves the programs in the folder, unless they are there; returns why not, if they cannot be had."""
    names = [package.rpartition("/")[2] for package in packages]
    if all((folder / name).exists() for name in names):
        return None
    if not shutil.which("go"):
        return "Go is missing"
    folder.mkdir(parents=True, exist_ok=True)
    found = subprocess.run(["go", "mod", "download", "-json", "@".join(module)], cwd=folder, stdout=subprocess.PIPE, text=True)
    source = json.loads(found.stdout or "{}")
    if "Dir" not in source:
        return source.get("Error", "its module cannot be had")
    print(f"Building {', '.join(names)} from {module[0]}", flush=True)
    # In the module itself, so that each dependency is the one that its authors chose.
    built = subprocess.run(["go", "build", "-o", f"{folder}/", *(f"./{package}" for package in packages)], cwd=source["Dir"])
    return f"go build ended with {built.returncode}" if built.returncode else None


def build_tsbs(folder):
    return build(folder, TSBS, [f"cmd/{name}" for name in PROGRAMS])


class Tsbs:
    """What TSBS makes for a use case, a number of hosts or trucks, and hours from the beginning of 2016."""

    def __init__(self, programs, case, scale, hours, interval):
        self.programs, self.case, self.interval = programs, case, interval
        day, hour = 1 + hours // 24, hours % 24
        self.range = ["--use-case", case, "--seed", SEED, "--scale", str(scale), "--timestamp-start", BEGIN]
        self.end = f"2016-01-{day:02}T{hour:02}:00:00Z", f"2016-01-{day:02}T{hour:02}:00:01Z"

    def write_lines(self, path):
        """Writes line protocol."""
        command = [self.programs / "tsbs_generate_data", *self.range, "--timestamp-end", self.end[0], "--log-interval", self.interval,
                   "--format", "influx"]
        partial = path.with_suffix(".partial")
        with partial.open("wb") as out:
            subprocess.run(command, stdout=out, check=True)
        partial.rename(path)

    def load(self, loader, path, workers):
        """Has a loader with its options send the lines to a server; returns the rows a second that it reports."""
        command = [self.programs / loader[0], *loader[1:], "--file", path, "--workers", str(workers), "--batch-size", "10000",
                   "--reporting-period", "0s"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        rate = re.search(r"loaded \d+ rows in .* \(mean rate ([\d.]+) rows/sec\)", done.stdout)
        if done.returncode or not rate:
            raise SystemExit(f"{loader[0]} ended with {done.returncode}\n{done.stdout[-2000:]}")
        return float(rate[1])

    def statements(self, kind, count):
        """Returns so many statements of a type, as it makes them for TimescaleDB with tags in the same table; none if it cannot."""
        command = [self.programs / "tsbs_generate_queries", *self.range, "--timestamp-end", self.end[1], "--queries", str(count),
                   "--query-type", kind, "--format", "timescaledb", "--timescale-use-tags=false", "--debug", "3"]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            return []
        # They come encoded for its own runner; what it tells a reader has them as text.
        told = re.sub(r"\n[^\n]*: \d+ points\s*\Z", "\n", done.stderr)
        return [" ".join(text.split()) for text in re.findall(r"^HumanLabel: .*?, Hypertable: \w+, Query: (.*?)(?=^HumanLabel: |\Z)", told, re.S | re.M)]


if __name__ == "__main__":
    sys.exit(build_tsbs(Path(sys.argv[1])))

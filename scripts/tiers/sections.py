"""The sections of both tiers: what each is called, how long it takes, and what it concerns.

`scripts/sections NAME` runs one. A section is in one tier: in the landing tier if a change may not
land without it, in the proof otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

CORE = ("crates/arc-lp/", "crates/arc-core/")
SERVER = (*CORE, "crates/arc-server/", "crates/arc-edge/")
WHEEL = (*CORE, "crates/arc-py/", "crates/arc-adbc/", "scripts/clients/", "docs/python.md")
RUST = ("crates/", "benches/", "examples/", "scripts/features/")

EVERYTHING = (
    "Cargo.",
    "rust-toolchain.toml",
    ".config/",
    "scripts/test",
    "scripts/tiers/",
    "scripts/sections",
)
"""A change below one of these concerns every section."""


@dataclass(frozen=True)
class Section:
    """One step of a tier.

    `budget_s` is what it may take on two cores with all dependencies built; `limit_s` ends it. The
    limit of a section that compiles has room for a machine on which nothing is built yet.

    A section `beside` others waits for more than it computes: it needs what `build` makes, compiles
    nothing, and runs beside the sections that do.
    """

    name: str
    budget_s: int
    paths: tuple[str, ...] = ()
    limit_s: int = 0
    beside: bool = False

    @property
    def time_limit_s(self) -> int:
        return self.limit_s or max(180, 3 * self.budget_s)

    def is_concerned(self, changed: list[str]) -> bool:
        prefixes = (*self.paths, *EVERYTHING) if self.paths else ("",)
        return any(path.startswith(prefixes) for path in changed)


COLD_S = 3_600

LANDING = (
    Section("format", 5, RUST),
    Section("features", 15),
    Section("deny", 10, ("deny.toml", "Cargo.")),
    Section("build", 200, (*RUST, "scripts/clients/", "scripts/reliability/"), COLD_S),
    Section("lint", 80, RUST, COLD_S),
    Section("each-feature", 30, CORE, COLD_S),
    Section("tests", 640, RUST),
    Section("nodes", 90, CORE),
    Section("doctests", 30, RUST),
    Section("core-alone", 60, CORE, COLD_S),
    Section("lp-portable", 20, ("crates/arc-lp/",), 600),
    Section("lp-fuzz", 20, ("crates/arc-lp/",), 600),
    Section("docs", 60, RUST, 1_200),
    Section("examples", 10, (*CORE, "examples/")),
    Section("schedules", 60, CORE, COLD_S),
    Section("console", 20, ("crates/arc-server/console/",)),
    Section("quickstart", 15, SERVER, beside=True),
    Section("python", 210, (*WHEEL, *SERVER), beside=True),
    Section("clients", 170, (*SERVER, "scripts/clients/", "docs/clients.md", "docs/running.md"), beside=True),
    Section("reliability", 290, (*SERVER, "scripts/reliability/"), beside=True),
    Section("answers", 165, (*SERVER, "scripts/reliability/"), beside=True),
)

PROOF = (
    Section("advisories", 30),
    Section("all-features", 600, limit_s=COLD_S),
    Section("release", 3_000, limit_s=3 * COLD_S),
    Section("long-tests", 1_500, limit_s=2 * COLD_S),
    Section("no-std", 60, limit_s=600),
    Section("lp-neon", 90, limit_s=900),
    Section("lp-miri", 120, limit_s=900),
    Section("long-schedules", 600, limit_s=COLD_S),
    Section("storm", 700, limit_s=COLD_S),
    Section("readers", 300),
    Section("hostile", 1_000),
    Section("edge", 120),
    Section("cluster", 300),
    Section("long-answers", 1_700, limit_s=COLD_S),
    Section("hunt", 1_000),
    Section("s3", 180, limit_s=COLD_S),
    Section("suites", 300, limit_s=1_800),
    Section("browser", 300),
    Section("wheel", 900, limit_s=COLD_S),
    Section("logictest", 240, limit_s=1_800),
    Section("all-clients", 700, limit_s=COLD_S),
)

"""docs/running.md, as an administrator follows it: each section by itself, after the first one."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from machine import Machine
from pyarrow import flight
from test_page import BLOCK, Block

PAGE = Path(__file__).parents[2] / "docs" / "running.md"
FIRST, CONTAINER, PROXY, BACKUPS = "As a service", "In a container", "Behind a proxy", "Backups by a timer"
TLS, LOGS, LOST = "TLS without a proxy", "Logs", "A lost administrator's token"
DAMAGED, UPGRADE, WATCH = "A damaged `tokens.json`", "Upgrade", "What to watch"
INSTRUCTIONS = {"FROM", "RUN", "COPY", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"}
ADMIN_PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"


def sections() -> dict[str, list[Block]]:
    """Returns the blocks of each section by its heading."""
    parts = re.split(r"^###? (.*)$", PAGE.read_text(), flags=re.MULTILINE)
    named = dict(zip(parts[1::2], parts[2::2], strict=True))
    return {name: [Block(*block) for block in BLOCK.findall(text)] for name, text in named.items()}


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Machine]:
    """A machine that has the program in the folder of the commands, and nothing else."""
    need("curl")
    machine = Machine(tmp_path)
    yield machine
    if machine.server is not None:
        machine.server.kill()


@pytest.fixture
def machine(bare: Machine) -> Machine:
    """A machine after the first section, with one point in the store."""
    bare.follow(*sections()[FIRST])
    bare.client = bare.printed.split()[-1]
    assert bare.write() == "204"
    return bare


def need(*programs: str) -> None:
    """Skips the test where one of these programs is not installed."""
    for program in programs:
        if shutil.which(program, path=ADMIN_PATH) is None:
            pytest.skip(f"{program} is not installed")


def test_every_block_is_run() -> None:
    lines = PAGE.read_text().splitlines()
    assert sum(line.startswith("```") for line in lines) == 2 * sum(map(len, sections().values()))
    assert {*sections()} == {FIRST, CONTAINER, PROXY, TLS, LOGS, BACKUPS, LOST, DAMAGED, UPGRADE, WATCH}
    assert [block[:2] for block in sections()[CONTAINER]] == [("dockerfile", "Containerfile"), ("sh", "container")]
    assert [block.language for block in sections()[PROXY]] == ["nginx"]
    assert not sections()[WATCH]


def test_the_service_goes_on_after_a_hangup_and_not_with_a_setting_that_is_wrong(machine: Machine) -> None:
    data = machine.root / "var/lib/arc"
    assert data.stat().st_mode & 0o777 == 0o700 and not (data / "admin.token").exists()
    machine.systemctl("reload", "arc")
    machine.wait_for_lines("SIGHUP: there is no certificate to be read again")
    machine.check()
    machine.bash(f"arc-server verify --data-dir {data}")
    (machine.root / "etc/arc/arc.toml").write_text('http = "nowhere"')
    machine.systemctl("start", "arc")
    assert machine.wait() == int(machine.unit("arc.service")["RestartPreventExitStatus"])


def test_systemd_takes_the_units(bare: Machine) -> None:
    need("systemd-analyze")
    bare.follow(*(block for name in (FIRST, LOGS, BACKUPS) for block in sections()[name] if block.name))
    bare.bash(bare.here("install -m 755 ./arc-server /usr/local/bin && chmod 755 /usr/local/bin/arc-backup"))
    for unit in ("arc.service", "arc-backup.service", "arc-backup.timer"):
        command = ["systemd-analyze", "verify", "--man=no", str(bare.root / "etc/systemd/system" / unit)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        # An unknown key is a warning alone. Lines about other units of the real machine do not count.
        assert ran.returncode == 0 and str(bare.root) not in ran.stderr, ran.stderr


def test_the_program_of_the_container_starts_answers_and_stops(bare: Machine) -> None:
    text = bare.here(sections()[CONTAINER][0].text).replace("0.0.0.0:8000", bare.address)
    lines = dict(line.split(" ", 1) for line in text.splitlines())
    assert {*lines} == INSTRUCTIONS
    command = json.loads(lines["ENTRYPOINT"]) + json.loads(lines["CMD"])
    program = [os.environ["TESTED_SERVER"], "serve", "--help"]
    known = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    assert all(f"{word} " in known for word in command if word.startswith("--"))
    bare.start([str(bare.root / "here" / command[0]), *command[1:]], bare.journal)
    assert bare.curl("/ready", token="none").endswith("200")
    health = json.loads(lines["HEALTHCHECK"].partition(" CMD ")[2])
    assert '"pass"' in subprocess.run(health, capture_output=True, text=True, check=True).stdout
    bare.stop(signal.Signals[lines["STOPSIGNAL"]])


@pytest.mark.proof
def test_the_container_runs(bare: Machine) -> None:
    need("docker")
    if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no docker daemon answers")
    file, commands = sections()[CONTAINER]
    name = f"my-arc-{os.getpid()}"
    shutil.copy(os.environ["TESTED_SERVER"], bare.root / "here" / "arc-server")
    (bare.root / "here" / file.name).write_text(file.text)
    try:
        bare.bash(commands.text.replace("my-arc", name).replace("127.0.0.1:8000", bare.address))
        assert bare.printed.split()[-2].startswith("arc_1_")
    finally:
        for words in (["rm", "-f", name], ["volume", "rm", f"{name}-data"], ["rmi", name]):
            subprocess.run(["docker", *words], capture_output=True, check=False)


def test_a_proxy_hands_on_pages_bodies_and_flight(machine: Machine) -> None:
    need("nginx")
    machine.follow(*sections()[PROXY])
    machine.bash(machine.here("arc-server cert --name arc.example.org --to /etc/arc/tls"))
    folder = machine.root / "etc/nginx"
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    (folder / "nginx.conf").write_text(
        f"daemon off; user root; pid {folder}/pid; error_log stderr; events {{}}\n"
        f"http {{ access_log off; {temporary} include {folder}/conf.d/*.conf; }}\n"
    )
    command = [str(shutil.which("nginx", path=ADMIN_PATH)), "-c", str(folder / "nginx.conf")]
    subprocess.run([*command, "-t"], check=True)
    origin = f"https://arc.example.org:{machine.https_port}"
    page = ["-H", f"origin: {origin}"]
    # The server compares the origin of a page with the name in `Host`, which is an address here.
    assert machine.curl("/api/v1/databases", *page).endswith("403")
    proxy = subprocess.Popen(command)
    try:
        machine.url = origin
        resolve = ["--resolve", f"{origin.removeprefix('https://')}:127.0.0.1"]
        assert machine.curl("/api/v1/databases", *page, *resolve).endswith("200")
        large = machine.root / "large"
        large.write_text("".join(f"pump,id=8 rpm={n}i {n}\n" for n in range(100_000)))
        assert machine.curl("/write?db=plant", "--data-binary", f"@{large}", *resolve).endswith("204")
        roots = (machine.root / "etc/arc/tls/cert.pem").read_bytes()
        address = f"grpc+tls://127.0.0.1:{machine.https_port}"
        with flight.connect(address, tls_root_certs=roots, override_hostname="arc.example.org") as client:
            ticket = flight.Ticket(b'{"database": "plant", "sql_query": "SELECT count(*) AS n FROM pump"}')
            login = flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {machine.admin}".encode())])
            assert client.do_get(ticket, login).read_all().to_pylist() == [{"n": 100_001}]
    finally:
        proxy.terminate()
        proxy.wait(timeout=60)


def test_the_server_encrypts_by_itself(machine: Machine) -> None:
    machine.follow(*sections()[TLS])
    machine.url = machine.url.replace("http:", "https:")
    machine.check()


def test_logs_are_in_a_file_that_is_rotated(machine: Machine) -> None:
    need("logrotate")
    machine.follow(*sections()[LOGS])
    machine.check()
    log = machine.root / "var/log/arc/arc.log"
    assert log.with_name("arc.log.1.gz").exists()
    assert "stopped" in json.loads(log.read_text().splitlines()[-1])["message"]
    assert "serving HTTP" in machine.printed


def test_backups_are_kept_and_proved(machine: Machine) -> None:
    backups = machine.root / "var/backups/arc"
    for day in range(11, 20):
        (backups / f"daily-202501{day}-023000").mkdir()
    machine.follow(*sections()[BACKUPS])
    kept = sorted(path.name for path in backups.glob("daily-*"))
    assert len(kept) == 7 and kept[0] == "daily-20250114-023000"
    assert "clean (0 errors, 0 warnings)" in machine.printed
    machine.check()
    with pytest.raises(AssertionError, match="connect"):
        machine.systemctl("start", "arc-backup.service")


def test_a_lost_token_is_replaced_and_others_stay(machine: Machine) -> None:
    lost = machine.admin
    machine.follow(*sections()[BACKUPS])
    other, none = sections()[LOST]
    machine.follow(other)
    rotated = machine.printed.split()[-1]
    assert machine.curl("/api/v1/databases", token=lost).endswith("401")
    assert machine.curl("/api/v1/databases", token=rotated).endswith("200")
    machine.follow(none)
    assert machine.curl("/api/v1/databases", token=rotated).endswith("401")
    assert machine.write() == "204"
    machine.check()


def test_a_damaged_file_of_tokens_is_replaced(machine: Machine) -> None:
    machine.follow(*sections()[BACKUPS])
    machine.stop()
    tokens = machine.root / "var/lib/arc/tokens.json"
    tokens.write_bytes(tokens.read_bytes()[:100])
    machine.systemctl("start", "arc")
    assert machine.wait() == 1
    said, copy, anew = sections()[DAMAGED]
    machine.follow(said, copy)
    assert machine.write() == "204"
    machine.follow(anew)
    assert machine.write() == "401"
    machine.check()


def test_an_upgrade_goes_forth_and_back(machine: Machine) -> None:
    for block in sections()[UPGRADE]:
        machine.follow(block)
        assert machine.write() == "204"
    assert (machine.root / "var/lib/arc.new").is_dir()
    machine.check()


def test_what_is_watched_is_there(machine: Machine) -> None:
    text = PAGE.read_text().partition(f"## {WATCH}")[2]
    metrics = machine.curl("/metrics", token=machine.client)
    names = re.findall(r"`(arc_\w+)`", text)
    assert names and [name for name in names if f"\n{name} " not in metrics] == []
    for path in re.findall(r"^\| `(/\w+)`", text, re.MULTILINE):
        assert machine.curl(path, "-H", "authorization:").endswith("200")

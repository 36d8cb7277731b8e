"""Who is asked: each loads the lines, says how many rows of a table it has, and answers statements, as bytes and as a table."""
import datetime
import json
import os
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import beside
import peers
import spellings

DATABASE = "benchmark"


def influx_loader(url):
    # A database comes with its first point; the loader would drop an old one, and make it by GET.
    return ["tsbs_load_influx", "--urls", url, "--do-create-db=false"]


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=600) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        raise beside.Refused(f"{urllib.parse.unquote_plus(url)}\n{error.read().decode()}") from error


class Arc(beside.Arc):
    """The one that is measured."""

    @property
    def data(self):
        return self.folder / "arc"

    def loader(self):
        return influx_loader(self.url)

    def counts(self, tables):
        return tables

    def spelled(self, kind, sql):
        return sql

    def rows(self, table):
        return self.ask(f"SELECT count(*) FROM {table}").column(0)[0].as_py()

    def answer(self, _kind, sql):
        return self.fetch(sql)

    def table(self, _kind, sql):
        return self.ask(sql)


class DuckDB:
    """In this process; a table for each measurement, in the order of the lines."""

    name, pid, url = "DuckDB", os.getpid(), None

    def __init__(self, folder, lines, threads):
        import duckdb
        self.connection = duckdb.connect(folder / "duckdb", config={"threads": threads})
        self.connection.execute("SET TimeZone = 'UTC'")
        if not self.connection.sql("SHOW TABLES").fetchall():
            self.read(lines)
            self.connection.execute("CHECKPOINT")

    def read(self, lines):
        # Nothing that TSBS writes is escaped.
        self.connection.execute(f"""CREATE TEMP TABLE lines AS SELECT string_split(key, ',') AS key, string_split(fields, ',') AS fields, ns
            FROM read_csv('{lines}', delim = ' ', quote = '', escape = '', header = false, auto_detect = false,
                          columns = {{key: 'VARCHAR', fields: 'VARCHAR', ns: 'BIGINT'}})""")
        for table, in self.connection.sql("SELECT DISTINCT key[1] FROM lines").fetchall():
            tags = self.names("key[2:]", table)
            fields = self.names("fields", table)
            columns = [f'tags[\'{name}\'] AS "{name}"' for name in tags]
            columns += [f'TRY_CAST(rtrim(fields[\'{name}\'], \'i\') AS {"BIGINT" if whole else "DOUBLE"}) AS "{name}"' for name, whole in fields.items()]
            pairs = "map_from_entries(list_transform({}, lambda pair: (split_part(pair, '=', 1), split_part(pair, '=', 2))))"
            self.connection.execute(f"""CREATE TABLE "{table}" AS SELECT make_timestamp(ns // 1000) AS time, {", ".join(columns)} FROM
                (SELECT ns, {pairs.format("key[2:]")} AS tags, {pairs.format("fields")} AS fields FROM lines WHERE key[1] = '{table}')""")
        self.connection.execute("DROP TABLE lines")

    def names(self, pairs, table):
        """Returns the names of tags or fields, with whether all of their values are integers."""
        found = self.connection.sql(f"""SELECT split_part(pair, '=', 1) AS name, bool_and(ends_with(pair, 'i')) FROM
            (SELECT unnest({pairs}) AS pair FROM lines WHERE key[1] = '{table}') GROUP BY name ORDER BY name""")
        return dict(found.fetchall())

    def tables(self):
        return [name for name, in self.connection.sql("SHOW TABLES").fetchall()]

    def spelled(self, _kind, sql):
        return sql

    def points(self, table):
        """Returns how many rows differ in time or tags: of iot, some lines lack the name of the truck, and two of these may be one point."""
        keys = self.connection.sql(f"SELECT column_name FROM (DESCRIBE \"{table}\") WHERE column_type IN ('TIMESTAMP', 'VARCHAR')").fetchall()
        names = ", ".join(f'"{name}"' for name, in keys)
        return self.connection.sql(f'SELECT count(*) FROM (SELECT DISTINCT {names} FROM "{table}")').fetchall()[0][0]

    def answer(self, _kind, sql):
        return self.connection.sql(sql).to_arrow_table()

    table = answer


class QuestDB(peers.QuestDb):
    """Not synced, its default. It does not answer what tsbs_load_influx asks first, and so has a loader of its own, over TCP."""

    name = "QuestDB"

    def settings(self):
        self.lines = f"127.0.0.1:{beside.free_port()}"
        return {**super().settings(), "QDB_LINE_TCP_ENABLED": "true", "QDB_LINE_TCP_NET_BIND_TO": self.lines}

    def loader(self):
        return ["tsbs_load_questdb", "--url", self.url, "--ilp-bind-to", self.lines]

    def counts(self, tables):
        return tables

    @property
    def pid(self):
        return self.process.pid

    def spelled(self, kind, sql):
        return spellings.questdb(kind, sql)

    def ask(self, sql):
        return get(f"{self.url}/exec?" + urllib.parse.urlencode({"query": sql, "count": "false"}))

    def rows(self, table):
        try:
            return json.loads(self.ask(f'SELECT count() FROM "{table}"'))["dataset"][0][0]
        except beside.Refused:
            return 0

    def answer(self, _kind, sql):
        return self.ask(sql)

    def table(self, _kind, sql):
        import pyarrow
        found = json.loads(self.ask(sql))
        columns = {}
        for at, column in enumerate(found["columns"]):
            values = [row[at] for row in found["dataset"]]
            if column["type"] == "TIMESTAMP":
                values = [datetime.datetime.fromisoformat(value.replace("Z", "+00:00")) for value in values]
            columns["time" if column["name"] == "timestamp" else column["name"]] = values
        return pyarrow.table(columns)


class VictoriaMetrics(peers.Peer):
    """Values of each field for themselves, which are floats; its log is not synced."""

    name = "VictoriaMetrics"
    programs = None

    def loader(self):
        return influx_loader(self.url)

    def counts(self, _tables):
        return ["cpu"]

    def command(self):
        return [str(self.programs / "victoria-metrics"), f"-storageDataPath={self.data}/data", f"-httpListenAddr=127.0.0.1:{self.port}",
                "-retentionPeriod=100y", "-search.latencyOffset=0s", "-search.maxPointsPerTimeseries=1000000", "-loggerLevel=WARN"]

    @property
    def pid(self):
        return self.process.pid

    def ready(self):
        urllib.request.urlopen(f"{self.url}/health", timeout=60).close()

    def spelled(self, kind, sql):
        return spellings.windows(kind, sql)

    def rows(self, table):
        get(f"{self.url}/internal/force_flush")
        counted = urllib.parse.urlencode({"query": f"sum(count_over_time({table}_usage_user[100y]))", "nocache": 1})
        found = json.loads(get(f"{self.url}/api/v1/query?{counted}"))["data"]["result"]
        return int(found[0]["value"][1]) if found else 0

    def answer(self, _kind, asked):
        hosts = f", hostname=~'{'|'.join(asked.hosts)}'" if asked.hosts else ""
        of = f"{{__name__=~'cpu_({'|'.join(asked.metrics)})'{hosts}}}[{asked.width}s]"
        by = "__name__, hostname" if asked.is_by_host else "__name__"
        # A window ends with its last millisecond: as it is here, its end belongs to it, and its beginning to the one before.
        begin, end = ((bucket + asked.width - 0.001) for bucket in inner_buckets(asked))
        query = f"{asked.function}({asked.function}_over_time({of})) by ({by})"
        return get(f"{self.url}/api/v1/query_range?" + urllib.parse.urlencode(
            {"query": query, "start": begin, "end": end, "step": asked.width, "nocache": 1}))

    def table(self, kind, asked):
        import pyarrow
        rows = {}
        for series in json.loads(self.answer(kind, asked))["data"]["result"]:
            metric = asked.metrics.index(series["metric"]["__name__"].removeprefix("cpu_"))
            host = [series["metric"]["hostname"]] if asked.is_by_host else []
            for end, value in series["values"]:
                key = (round(float(end) + 0.001) - asked.width, *host)
                rows.setdefault(key, [None] * len(asked.metrics))[metric] = float(value)
        rows = [(datetime.datetime.fromtimestamp(key[0], datetime.timezone.utc), *key[1:], *values) for key, values in sorted(rows.items())]
        names = [str(at) for at in range(1 + asked.is_by_host + len(asked.metrics))]
        return pyarrow.table([[row[at] for row in rows] for at in range(len(names))], names)


def inner_buckets(asked):
    """Returns when the first and the last of the buckets begin that lie wholly between the times that are asked for."""
    # Python 3.10 reads six digits of a second or none.
    wholes = [f"{time}.".split(".") for time in asked.times]
    begin, end = (datetime.datetime.fromisoformat(f"{second}.{digits.ljust(6, '0')}+00:00").timestamp() for second, digits, *_ in wholes)
    return -(-begin // asked.width) * asked.width, (end // asked.width - 1) * asked.width


def only_inner(table, asked):
    """Returns the rows of those buckets, of a table whose first column says when one begins."""
    import pyarrow.compute
    seconds = pyarrow.compute.divide(beside.plain(table.column(0)), 1_000_000_000)
    first, last = inner_buckets(asked)
    is_inner = pyarrow.compute.and_(pyarrow.compute.greater_equal(seconds, int(first)), pyarrow.compute.less_equal(seconds, int(last)))
    return table.filter(is_inner)


def disk_bytes(folder):
    return int(subprocess.check_output(["du", "-s", "--block-size=1", folder], text=True).split()[0])

"""What TSBS asks of TimescaleDB, for those who have no second table of tags, or another dialect."""
import re

TIMES = re.compile(r"'(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?) \+0000'")

# The statements of iot join a table of tags, of which we have none: readings and diagnostics carry theirs. What a truck is, is its
# name; hours and days are not cut to whole ones; a truck is broken down in ten minutes if it was in half of their rows or more.
LAST = "SELECT DISTINCT ON (name, driver) name, driver, {} FROM {} WHERE {} ORDER BY name, driver, time DESC"
TEN = "time_bucket('10 minutes', time) AS ten_minutes"
DAY = "time_bucket('24 hours', {}) AS day"
DRIVEN = f"SELECT name, driver FROM (SELECT {TEN}, name, driver FROM readings WHERE {{}} GROUP BY 1, 2, 3 HAVING avg(velocity) > 1) AS driven " \
    "GROUP BY name, driver HAVING count(ten_minutes) > {}"
IOT = {
    "last-loc": lambda of: LAST.format("longitude, latitude", "readings", of.fleet),
    "single-last-loc": lambda of: LAST.format("longitude, latitude", "readings", of.trucks),
    "low-fuel": lambda of: f"SELECT * FROM ({LAST.format('fuel_state', 'diagnostics', of.fleet)}) AS last WHERE fuel_state < 0.1",
    "high-load": lambda of: "SELECT name, driver, current_load FROM "
        f"({LAST.format('current_load, load_capacity', 'diagnostics', of.fleet)}) AS last WHERE current_load / load_capacity > 0.9",
    "stationary-trucks": lambda of: f"SELECT name, driver FROM readings WHERE {of.interval} AND {of.fleet} GROUP BY 1, 2 HAVING avg(velocity) < 1",
    "long-driving-sessions": lambda of: DRIVEN.format(f"{of.interval} AND {of.fleet}", of.periods),
    "long-daily-sessions": lambda of: DRIVEN.format(f"{of.interval} AND {of.fleet}", of.periods),
    "avg-vs-projected-fuel-consumption": lambda of: "SELECT fleet, avg(fuel_consumption) AS avg_fuel_consumption, "
        "avg(nominal_fuel_consumption) AS projected_fuel_consumption FROM readings WHERE velocity > 1 AND fleet IS NOT NULL AND "
        "nominal_fuel_consumption IS NOT NULL AND name IS NOT NULL GROUP BY fleet",
    "avg-daily-driving-duration": lambda of: f"WITH sessions AS (SELECT {TEN}, fleet, name, driver FROM readings WHERE name IS NOT NULL "
        f"GROUP BY 1, 2, 3, 4 HAVING avg(velocity) > 1), daily AS (SELECT {DAY.format('ten_minutes')}, fleet, name, driver, count(*) / 6.0 AS hours "
        "FROM sessions GROUP BY 1, 2, 3, 4) SELECT fleet, name, driver, avg(hours) AS avg_daily_hours FROM daily GROUP BY fleet, name, driver",
    "avg-daily-driving-session": lambda of: f"WITH status AS (SELECT name, {TEN}, avg(velocity) > 5 AS driving FROM readings "
        "WHERE name IS NOT NULL GROUP BY 1, 2), before AS (SELECT name, ten_minutes, driving, lag(driving) OVER (PARTITION BY name ORDER BY "
        "ten_minutes) AS previous FROM status), change AS (SELECT name, ten_minutes AS start, lead(ten_minutes) OVER (PARTITION BY name ORDER BY "
        "ten_minutes) AS stop, driving FROM before WHERE driving <> previous) "
        f"SELECT name, {DAY.format('start')}, avg(date_part('epoch', stop) - date_part('epoch', start)) AS duration FROM change WHERE driving "
        "GROUP BY 1, 2 ORDER BY 1, 2",
    "avg-load": lambda of: "SELECT fleet, model, load_capacity, avg(avg_load / load_capacity) AS avg_load_percentage FROM (SELECT fleet, model, "
        "load_capacity, name, avg(current_load) AS avg_load FROM diagnostics WHERE name IS NOT NULL GROUP BY 1, 2, 3, 4) AS loads GROUP BY 1, 2, 3",
    "daily-activity": lambda of: f"SELECT fleet, model, day, sum(rows_of_ten) / 144.0 AS daily_activity FROM (SELECT {DAY.format('time')}, {TEN}, "
        "fleet, model, name, count(*) AS rows_of_ten FROM diagnostics WHERE name IS NOT NULL GROUP BY 1, 2, 3, 4, 5 HAVING avg(status) < 1) AS active "
        "GROUP BY fleet, model, day ORDER BY day",
    "breakdown-frequency": lambda of: f"WITH broken AS (SELECT {TEN}, model, name, 2 * count(*) FILTER (WHERE status = 0) >= count(*) AS broken_down "
        "FROM diagnostics WHERE name IS NOT NULL GROUP BY 1, 2, 3), following AS (SELECT model, broken_down, lead(broken_down) OVER (PARTITION BY "
        "model, name ORDER BY ten_minutes) AS next_broken_down FROM broken) SELECT model, count(*) AS breakdowns FROM following "
        "WHERE NOT broken_down AND next_broken_down GROUP BY model",
}


class Drawn:
    """What the generator has drawn for a statement of iot, as conditions."""

    def __init__(self, text):
        fleet, trucks = re.search(r"fleet = '(\w+)'", text), re.search(r"name IN \(([^)]*)\)", text)
        self.fleet = f"name IS NOT NULL AND fleet = '{fleet[1]}'" if fleet else None
        self.trucks = f"name IN ({trucks[1]})" if trucks else None
        times = TIMES.findall(text)
        self.interval = "time >= '{} {} +0000' AND time < '{} {} +0000'".format(*times[0], *times[1]) if len(times) == 2 else None
        periods = re.search(r"count\(r\.ten_minutes\) > (\d+)", text)
        self.periods = periods and periods[1]


def flat(kind, text):
    """Returns a statement for one table with its tags: what Arc and DuckDB are asked. But for iot it is as it was made."""
    return IOT[kind](Drawn(text)) if kind in IOT else text


def questdb(kind, sql):
    """Returns a statement in the dialect of QuestDB; none if it has no word for it."""
    if kind in IOT:
        return None
    if kind == "lastpoint":
        return "SELECT * FROM cpu LATEST ON timestamp PARTITION BY hostname"
    for width, name in (("60 seconds", "1m"), ("3600 seconds", "1h")):
        sql = sql.replace(f"time_bucket('{width}', time)", f"timestamp_floor('{name}', timestamp)")
    return re.sub(r"\btime\b", "timestamp", TIMES.sub(r"'\1T\2Z'", sql))


class Windows:
    """A statement of windows, as VictoriaMetrics may be asked for it: what is aggregated, of which hosts, and from when to when."""

    def __init__(self, sql):
        self.metrics = re.findall(r"\b(?:max|avg)\((\w+)\)", sql)
        self.function = re.search(r"\b(max|avg)\(", sql)[1]
        self.width = int(re.search(r"time_bucket\('(\d+) seconds'", sql)[1])
        hosts = re.search(r"hostname IN \(([^)]*)\)", sql)
        self.hosts = re.findall(r"'(\w+)'", hosts[1]) if hosts else []
        self.is_by_host = not hosts
        self.times = [f"{day}T{time}" for day, time in TIMES.findall(sql)]


def windows(kind, sql):
    """Returns what VictoriaMetrics may be asked; none if it has no word for it."""
    return Windows(sql) if kind.startswith(("single-groupby", "cpu-max-all", "double-groupby")) else None

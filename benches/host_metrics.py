"""Makes a day of host metrics as Parquet: the rows that benches/queries.py asks about.

The shape is that of the "cpu-only" case of the Time Series Benchmark Suite: each host reports every ten seconds, with ten
tags that never change and ten fields that walk at random between 0 and 100, five of them floats with two decimals and
five integers. One file for each hour, rows in order of arrival. The same rows for the same arguments, wherever it runs.
"""
import numpy
import pyarrow
import pyarrow.parquet

ZONES = {"us-east-1": "abcde", "us-west-1": "ab", "us-west-2": "abc", "eu-west-1": "abc", "eu-central-1": "ab",
         "ap-southeast-1": "ab", "ap-southeast-2": "ab", "ap-northeast-1": "ac", "sa-east-1": "abc"}
TAGS = ["hostname", "region", "datacenter", "rack", "os", "arch", "team", "service", "service_version", "service_environment"]
FIELDS = ["usage_user", "usage_system", "usage_idle", "usage_nice", "usage_iowait", "usage_irq", "usage_softirq", "usage_steal",
          "usage_guest", "usage_guest_nice"]
FLOATS = 5
SECONDS = 10
START = numpy.datetime64("2025-01-01T00:00:00", "us").astype(numpy.int64)


def tags(hosts, seed):
    """Draws the tags of each host, in the order in which they have always been drawn."""
    draw = numpy.random.default_rng([seed, 0]).integers
    regions = [list(ZONES)[region] for region in draw(0, len(ZONES), hosts)]
    columns = [[f"host_{host}" for host in range(hosts)], regions,
               [region + ZONES[region][draw(0, len(ZONES[region]))] for region in regions]]
    for values in [[str(n) for n in range(100)], ["Debian12", "Ubuntu24.04", "Alpine3.20"], ["x64", "arm64"],
                   ["north", "south", "east", "west"], [str(n) for n in range(20)], ["0", "1"], ["production", "staging", "test"]]:
        columns.append([values[at] for at in draw(0, len(values), hosts)])
    return [pyarrow.array(column).dictionary_encode() for column in columns]


def write(folder, hosts, hours, seed=42):
    """Writes the files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    of_hosts, ticks = tags(hosts, seed), 3600 // SECONDS
    random = numpy.random.default_rng([seed, 1])
    state = random.uniform(0.0, 100.0, (hosts, len(FIELDS)))
    for hour in range(hours):
        walk = numpy.empty((ticks, hosts, len(FIELDS)))
        for tick in range(ticks):
            walk[tick] = state
            state = numpy.clip(state + random.standard_normal(state.shape), 0.0, 100.0)
        times = START + (hour * ticks + numpy.arange(ticks)) * SECONDS * 1_000_000
        host = numpy.tile(numpy.arange(hosts, dtype=numpy.int32), ticks)
        columns = {"time": pyarrow.array(numpy.repeat(times, hosts)).cast(pyarrow.timestamp("us"))}
        for name, values in zip(TAGS, of_hosts):
            codes = numpy.asarray(values.indices)[host]
            columns[name] = pyarrow.DictionaryArray.from_arrays(codes, values.dictionary)
        for at, name in enumerate(FIELDS):
            values = walk[:, :, at].reshape(-1)
            columns[name] = numpy.round(values, 2) if at < FLOATS else values.astype(numpy.int64)
        # Without Arrow's own schema: tags are plain strings, as other engines write them.
        table = pyarrow.table(columns)
        with pyarrow.parquet.ParquetWriter(folder / f"{hour:02}.parquet", table.schema, compression="zstd", store_schema=False) as file:
            file.write_table(table, row_group_size=131_072)

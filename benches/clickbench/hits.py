#!/usr/bin/env python3
"""Makes rows like those of ClickBench's table `hits`, as Parquet: the real ones are 14 GB that not every machine can have.

The 105 columns have their names and types; how often a value comes is as in the real rows, roughly: a counter in twelve has most
visits, most search phrases and phone models are empty, few visitors have many pages, URLs and titles have a long tail. As there, rows
lie in order of counter and day within half a million. The values that the statements ask for are there. The same rows for the same
arguments and version of numpy.

    benches/clickbench/hits.py make hits.parquet [--rows 3000000] [--seed 42]
    benches/clickbench/hits.py convert hits.parquet typed.parquet

The second gives the real file the types that its columns mean: texts instead of bytes, dates and times instead of integers. It needs
pyarrow, and holds one row group at a time.
"""
import argparse
from pathlib import Path

import numpy
import pyarrow
import pyarrow.parquet

CHUNK = 500_000
FIRST_DAY = numpy.datetime64("2013-07-01", "D").astype(int)
DAYS = 31
WORDS = ("купить скачать онлайн бесплатно погода новости карта расписание фильм музыка авто ремонт квартира игра рецепт отзывы цена "
         "москва смотреть форум 2013 год лето работа школа сайт магазин диван телефон спб").split()
SITES = "auto holodilnik irr kinopoisk maps moikrug news pogoda realty slovari smeshariki sport travel video wildberries yandex".split()

# Small integers: type, and how many values there are; the first comes most often.
SMALL = {
    "JavaEnable": ("int16", 2), "GoodEvent": ("int16", 1), "CounterClass": ("int16", 2), "OS": ("int16", 60),
    "UserAgent": ("int16", 60), "RefererCategoryID": ("int16", 300), "RefererRegionID": ("int32", 1_000),
    "URLCategoryID": ("int16", 300), "URLRegionID": ("int32", 1_000), "ResolutionDepth": ("int16", 5), "FlashMajor": ("int16", 12),
    "FlashMinor": ("int16", 8), "NetMajor": ("int16", 4), "NetMinor": ("int16", 3), "UserAgentMajor": ("int16", 30),
    "CookieEnable": ("int16", 2), "JavascriptEnable": ("int16", 2), "IsMobile": ("int16", 2), "IPNetworkID": ("int32", 40_000),
    "TraficSourceID": ("int16", 10), "IsArtifical": ("int16", 2), "ClientTimeZone": ("int16", 24),
    "SilverlightVersion1": ("int16", 6), "SilverlightVersion2": ("int16", 2), "SilverlightVersion3": ("int32", 30),
    "SilverlightVersion4": ("int16", 2), "CodeVersion": ("int32", 80), "IsLink": ("int16", 2), "IsDownload": ("int16", 2),
    "IsNotBounce": ("int16", 2), "IsOldCounter": ("int16", 2), "IsEvent": ("int16", 2), "IsParameter": ("int16", 2),
    "DontCountHits": ("int16", 2), "WithHash": ("int16", 2), "Age": ("int16", 6), "Sex": ("int16", 3), "Income": ("int16", 5),
    "Interests": ("int16", 3_000), "Robotness": ("int16", 5), "WindowName": ("int32", 6_000), "OpenerName": ("int32", 6_000),
    "HistoryLength": ("int16", 100), "HTTPError": ("int16", 2), "SendTiming": ("int32", 3_000), "DNSTiming": ("int32", 1_000),
    "ConnectTiming": ("int32", 1_000), "ResponseStartTiming": ("int32", 4_000), "ResponseEndTiming": ("int32", 5_000),
    "FetchTiming": ("int32", 6_000), "SocialSourceNetworkID": ("int16", 10), "ParamPrice": ("int64", 50), "ParamCurrencyID": ("int16", 3),
    "HasGCLID": ("int16", 2), "CLID": ("int32", 400),
}
# Texts of which few are not empty: the part that is not, and how many there are.
RARE = {
    "FlashMinor2": (0.7, 40), "UserAgentMinor": (0.9, 60), "Params": (0.02, 20_000), "PageCharset": (0.8, 8),
    "OriginalURL": (0.3, 100_000), "HitColor": (1.0, 4), "BrowserLanguage": (0.95, 40), "BrowserCountry": (0.95, 80),
    "SocialNetwork": (0.002, 6), "SocialAction": (0.002, 8), "SocialSourcePage": (0.01, 3_000), "ParamOrderID": (0.001, 2_000),
    "ParamCurrency": (0.9, 3), "OpenstatServiceName": (0.01, 20), "OpenstatCampaignID": (0.01, 500), "OpenstatAdID": (0.01, 2_000),
    "OpenstatSourceID": (0.01, 200), "UTMSource": (0.02, 200), "UTMMedium": (0.02, 20), "UTMCampaign": (0.02, 1_000),
    "UTMContent": (0.01, 1_000), "UTMTerm": (0.01, 2_000), "FromTag": (0.01, 500),
}
COLUMNS = """WatchID JavaEnable Title GoodEvent EventTime EventDate CounterID ClientIP RegionID UserID CounterClass OS UserAgent URL Referer
IsRefresh RefererCategoryID RefererRegionID URLCategoryID URLRegionID ResolutionWidth ResolutionHeight ResolutionDepth FlashMajor
FlashMinor FlashMinor2 NetMajor NetMinor UserAgentMajor UserAgentMinor CookieEnable JavascriptEnable IsMobile MobilePhone
MobilePhoneModel Params IPNetworkID TraficSourceID SearchEngineID SearchPhrase AdvEngineID IsArtifical WindowClientWidth
WindowClientHeight ClientTimeZone ClientEventTime SilverlightVersion1 SilverlightVersion2 SilverlightVersion3 SilverlightVersion4
PageCharset CodeVersion IsLink IsDownload IsNotBounce FUniqID OriginalURL HID IsOldCounter IsEvent IsParameter DontCountHits WithHash
HitColor LocalEventTime Age Sex Income Interests Robotness RemoteIP WindowName OpenerName HistoryLength BrowserLanguage BrowserCountry
SocialNetwork SocialAction HTTPError SendTiming DNSTiming ConnectTiming ResponseStartTiming ResponseEndTiming FetchTiming
SocialSourceNetworkID SocialSourcePage ParamPrice ParamOrderID ParamCurrency ParamCurrencyID OpenstatServiceName OpenstatCampaignID
OpenstatAdID OpenstatSourceID UTMSource UTMMedium UTMCampaign UTMContent UTMTerm FromTag HasGCLID RefererHash URLHash CLID""".split()


def ranks(random, values, rows, skew=1.5):
    """Draws places among `values` of them, the first ones more often."""
    return numpy.minimum((values * random.random(rows) ** (2 * skew)).astype(numpy.int64), values - 1)


def phrases(random, count, words):
    """Returns so many texts of so many words."""
    drawn = random.integers(0, len(WORDS), (count, words))
    lengths = random.integers(2, words + 1, count)
    return [" ".join(WORDS[word] for word in row[:length]) + f" {at}" for at, (row, length) in enumerate(zip(drawn, lengths))]


def addresses(random, count):
    """Returns so many URLs; a few are of google."""
    sites, depth = random.integers(0, len(SITES), count), random.integers(1, 90, count)
    hosts = ["google" if at % 4_000 == 3_999 else SITES[site] for at, site in enumerate(sites)]
    return [f"http{'s' * (at % 9 == 0)}://{'www.' * (at % 5 == 0)}{host}.ru/{'catalog/' * (deep % 3)}item_{at}.html?ref={'x1y2z3' * (deep // 9)}"
            for at, (host, deep) in enumerate(zip(hosts, depth))]


def pool(texts):
    return pyarrow.array(texts, pyarrow.string())


class Rows:
    """What all chunks have in common."""

    def __init__(self, rows, seed):
        random = numpy.random.default_rng([seed, 0])
        self.rows, self.seed = rows, seed
        self.users = random.integers(1, 2**62, max(rows // 6, 100))
        self.addresses = random.integers(-2**31, 2**31, max(rows // 10, 100))
        urls = max(rows // 6, 1_000)
        self.urls, self.referers = pool(addresses(random, urls)), pool(["", *addresses(random, urls)])
        self.url_hashes = random.integers(-2**63, 2**63 - 1, urls)
        self.referer_hashes = random.integers(-2**63, 2**63 - 1, urls + 1)
        titles = phrases(random, max(rows // 10, 1_000), 12)
        titles[5::700] = [title + " - Google" for title in titles[5::700]]
        self.titles = pool(["", *titles])
        self.phrases = pool(["", *phrases(random, max(rows // 16, 1_000), 5)])
        self.models = pool(["", *[f"Model {at}" for at in range(166)]])
        self.rare = {name: pool(["", *[f"{name.lower()}{at}" for at in range(count)]]) for name, (_, count) in RARE.items()}

    def chunk(self, at, rows):
        random = numpy.random.default_rng([self.seed, 1, at])
        some = lambda part: random.random(rows) < part  # noqa: E731
        counter = ranks(random, 15_000, rows, 2.5)
        # One of the middling ones is the counter that the last statements are about.
        counter = numpy.where(counter == 1, 62, numpy.where(counter == 62, 1, counter))
        day, second = FIRST_DAY + random.integers(0, DAYS, rows), random.integers(0, 86_400, rows)
        order = numpy.lexsort((day, counter))
        counter, day = counter[order], day[order]
        time = day * 86_400 + second
        user = self.users[ranks(random, len(self.users), rows, 0.8)]
        url, referer = ranks(random, len(self.urls), rows), numpy.where(some(0.8), 1 + ranks(random, len(self.referers) - 1, rows), 0)
        searched = some(0.13)
        width = numpy.array([1366, 1920, 1280, 1024, 1440, 1600, 0, 320, 768])[ranks(random, 9, rows, 0.8)]
        columns = {
            "WatchID": random.integers(2**62, 2**63 - 1, rows), "EventTime": time.astype(numpy.int64),
            "EventDate": pyarrow.array(day.astype(numpy.int32)).cast(pyarrow.date32()), "CounterID": counter.astype(numpy.int32),
            "ClientIP": self.addresses[ranks(random, len(self.addresses), rows, 0.8)].astype(numpy.int32),
            "RegionID": ranks(random, 9_000, rows, 2).astype(numpy.int32), "UserID": numpy.where(some(1e-5), 435090932899640449, user),
            "URL": self.urls.take(url), "Referer": self.referers.take(referer),
            "Title": self.titles.take(ranks(random, len(self.titles), rows)), "IsRefresh": some(0.15).astype(numpy.int16),
            "ResolutionWidth": width.astype(numpy.int16), "ResolutionHeight": (width * 9 // 16).astype(numpy.int16),
            "MobilePhone": numpy.where(some(0.06), ranks(random, 100, rows), 0).astype(numpy.int16),
            "MobilePhoneModel": self.models.take(numpy.where(some(0.06), 1 + ranks(random, 166, rows, 1), 0)),
            "SearchEngineID": numpy.where(searched, 1 + ranks(random, 80, rows, 3), 0).astype(numpy.int16),
            "SearchPhrase": self.phrases.take(numpy.where(searched, 1 + ranks(random, len(self.phrases) - 1, rows, 0.9), 0)),
            "AdvEngineID": numpy.where(some(0.006), 1 + ranks(random, 18, rows), 0).astype(numpy.int16),
            "WindowClientWidth": random.integers(0, 2_000, rows, numpy.int16), "WindowClientHeight": random.integers(0, 1_200, rows, numpy.int16),
            "ClientEventTime": pyarrow.array(time + random.integers(-50_000, 50_000, rows), pyarrow.timestamp("s")),
            "LocalEventTime": pyarrow.array(time + 14_400, pyarrow.timestamp("s")),
            "FUniqID": numpy.where(some(0.4), user, 0), "HID": random.integers(0, 2**30, rows, numpy.int32),
            "RemoteIP": self.addresses[ranks(random, len(self.addresses), rows, 0.8)].astype(numpy.int32),
            "RefererHash": numpy.where(some(0.005), 3594120000172545465, self.referer_hashes[referer]),
            "URLHash": numpy.where(some(0.01), 2868770270353813622, self.url_hashes[url]),
        }
        for name, (kind, values) in SMALL.items():
            columns[name] = ranks(random, values, rows).astype(kind)
        for name, (part, count) in RARE.items():
            columns[name] = self.rare[name].take(numpy.where(some(part), 1 + ranks(random, count, rows), 0))
        return pyarrow.table({name: columns[name] for name in COLUMNS})


def write(path, rows, seed=42):
    """Writes a file of so many rows."""
    made, writer = Rows(rows, seed), None
    partial = path.with_suffix(".partial")
    for at in range(0, rows, CHUNK):
        table = made.chunk(at, min(CHUNK, rows - at))
        writer = writer or pyarrow.parquet.ParquetWriter(partial, table.schema, compression="zstd")
        writer.write_table(table, row_group_size=CHUNK)
    writer.close()
    partial.rename(path)


def typed(name, column):
    """Returns a column of the real file as what it means."""
    if name == "EventDate":
        return column.cast(pyarrow.int32()).cast(pyarrow.date32())
    if name in ("ClientEventTime", "LocalEventTime"):
        return column.cast(pyarrow.int64()).cast(pyarrow.timestamp("s"))
    return column.cast(pyarrow.string()) if pyarrow.types.is_binary(column.type) else column


def convert(source, target):
    writer = None
    with pyarrow.parquet.ParquetFile(source) as file:
        for group in range(file.num_row_groups):
            table = file.read_row_group(group)
            table = pyarrow.table({name: typed(name, column) for name, column in zip(table.column_names, table.columns)})
            writer = writer or pyarrow.parquet.ParquetWriter(target, table.schema, compression="zstd")
            writer.write_table(table)
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("make")
    made.add_argument("target", type=Path)
    made.add_argument("--rows", type=int, default=3_000_000)
    made.add_argument("--seed", type=int, default=42)
    converted = commands.add_parser("convert")
    converted.add_argument("source", type=Path)
    converted.add_argument("target", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "make":
        write(arguments.target, arguments.rows, arguments.seed)
    else:
        convert(arguments.source, arguments.target)


if __name__ == "__main__":
    main()

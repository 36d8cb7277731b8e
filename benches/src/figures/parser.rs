//! The parser's figures: MB/s of every face on every corpus, ratios, instruction sets.
//!
//! The bench `lp_parse` is run three times: with the processor's vectors detected, with those that
//! its architecture always has, and without any. Ratios are taken within one run.

use std::{io, path::Path};

use super::{
    chart::{Bar, Chart, Series},
    document::Document,
    invalid,
    results::{Measured, Results},
    table::{number, number_or_dash, table},
};
use crate::corpus::Corpus;

const PUBLISHED: &str = "influxdb-line-protocol";

/// Faces of the parser, with the heads of their columns.
const FACES: [(&str, &str); 7] = [
    ("tokens", "tokens"),
    ("tokens-known", "… series known"),
    ("values", "typed values"),
    ("values-known", "… series known"),
    ("split-points", "iterator with a scratch"),
    ("points", "iterator"),
    (PUBLISHED, PUBLISHED),
];

/// Ways to record batches, with the heads of their columns.
const BATCHES: [(&str, &str); 3] = [
    ("record-batches", "records in order"),
    ("record-batches-shuffled", "in random order"),
    ("record-batches-new-series", "a new decoder for every 8 MB"),
];

/// Faces of the chart, with their names there.
const CHARTED: [(&str, &str); 5] = [
    ("tokens", "tokens"),
    ("values", "typed values"),
    ("split-points", "iterator with a scratch"),
    ("record-batches", "Arrow record batches"),
    (PUBLISHED, PUBLISHED),
];

/// Builds of the parser: their folders, and their names on x86-64.
const BUILDS: [(&str, &str); 3] = [("detected", "AVX2"), ("baseline", "SSE2"), ("portable", "portable")];

/// MB/s that a face must reach and should reach, on one core of the machine that they were set for.
#[derive(Debug, Clone, Copy)]
struct Goal {
    corpus: Corpus,
    face: &'static str,
    must: f64,
    stretch: f64,
}

const fn goal(corpus: Corpus, face: &'static str, must: f64, stretch: f64) -> Goal {
    Goal { corpus, face, must, stretch }
}

const GOALS: [Goal; 18] = [
    goal(Corpus::Telegraf, "tokens", 3000.0, 4500.0),
    goal(Corpus::CpuOnly, "tokens", 3500.0, 5500.0),
    goal(Corpus::Iot, "tokens", 3500.0, 6000.0),
    goal(Corpus::Short, "tokens", 3500.0, 6000.0),
    goal(Corpus::Escape, "tokens", 700.0, 1200.0),
    goal(Corpus::Floats, "tokens", 3500.0, 6500.0),
    goal(Corpus::Telegraf, "values", 1400.0, 1900.0),
    goal(Corpus::CpuOnly, "values", 2200.0, 3000.0),
    goal(Corpus::Iot, "values", 1900.0, 2600.0),
    goal(Corpus::Short, "values", 1900.0, 2600.0),
    goal(Corpus::Escape, "values", 650.0, 1000.0),
    goal(Corpus::Floats, "values", 650.0, 800.0),
    goal(Corpus::Telegraf, "record-batches", 800.0, 1100.0),
    goal(Corpus::CpuOnly, "record-batches", 1300.0, 1800.0),
    goal(Corpus::Iot, "record-batches", 1100.0, 1600.0),
    goal(Corpus::Short, "record-batches", 1100.0, 1500.0),
    goal(Corpus::Escape, "record-batches", 250.0, 400.0),
    goal(Corpus::Floats, "record-batches", 400.0, 550.0),
];

/// How many times as fast as the published parser typed values must be.
const RATIOS: [(Corpus, f64); 3] = [(Corpus::Telegraf, 7.0), (Corpus::CpuOnly, 8.0), (Corpus::Short, 12.0)];

/// Writes the tables of the parser and returns its charts.
pub(super) fn redraw(results: &Path, document: &mut Document) -> io::Result<Vec<(String, String)>> {
    let builds = BUILDS.map(|(folder, _)| Results::read(&results.join(folder)));
    let [detected, baseline, portable] = builds;
    let (detected, others) = (detected?, [baseline.ok(), portable.ok()]);
    if detected.get("lp_parse/telegraf/values").is_none() {
        return Err(invalid("there are no results of lp_parse"));
    }
    document.replace("parser", &speeds(&detected, &FACES))?;
    document.replace("parser-batches", &speeds(&detected, &BATCHES))?;
    document.replace("parser-ratios", &ratios(&detected))?;
    let mut charts = vec![("parser.svg".to_owned(), faces_chart(&detected).to_svg())];
    if let [Some(baseline), Some(portable)] = others {
        let builds = [&detected, &baseline, &portable];
        document.replace("parser-builds", &instructions(builds))?;
        charts.push(("parser-builds.svg".to_owned(), builds_chart(builds).to_svg()));
    }
    Ok(charts)
}

fn measured<'a>(results: &'a Results, corpus: Corpus, face: &str) -> Option<&'a Measured> {
    results.get(&format!("lp_parse/{}/{face}", corpus.name()))
}

fn speed(results: &Results, corpus: Corpus, face: &str) -> Option<f64> {
    measured(results, corpus, face)?.mb_per_second()
}

fn ratio(results: &Results, corpus: Corpus, face: &str) -> Option<f64> {
    Some(speed(results, corpus, face)? / speed(results, corpus, PUBLISHED)?)
}

fn goal_of(corpus: Corpus, face: &str) -> Option<Goal> {
    GOALS.into_iter().find(|goal| goal.corpus == corpus && goal.face == face)
}

/// MB/s, the must in brackets where there is one, and nanoseconds a line.
fn speeds(results: &Results, faces: &[(&str, &str)]) -> String {
    let columns: Vec<&str> = ["corpus"].into_iter().chain(faces.iter().map(|(_, head)| *head)).collect();
    let cell = |corpus: Corpus, face: &str| {
        let Some(measured) = measured(results, corpus, face) else { return "–".to_owned() };
        let must = goal_of(corpus, face).map_or_else(String::new, |goal| format!(" (≥ {})", number(goal.must)));
        let ns = number_or_dash(measured.ns_an_element());
        format!("{}{must}; {ns} ns", number_or_dash(measured.mb_per_second()))
    };
    let row = |corpus: Corpus| {
        [corpus.name().to_owned()].into_iter().chain(faces.iter().map(|(face, _)| cell(corpus, face))).collect()
    };
    table(&columns, &Corpus::ALL.map(row))
}

/// How many times as fast as the published parser, and the allocations of both.
fn ratios(results: &Results) -> String {
    let columns = [
        "corpus",
        "typed values",
        "must",
        "iterator with a scratch",
        "iterator",
        "record batches",
        "allocations a record: parser",
        "record batches",
        PUBLISHED,
    ];
    let row = |corpus: Corpus| {
        let times = |face| ratio(results, corpus, face).map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.1} ×"));
        let must = RATIOS.into_iter().find(|(of, _)| *of == corpus);
        let allocations = |face| number_or_dash(measured(results, corpus, face).and_then(|m| m.allocations));
        vec![
            corpus.name().to_owned(),
            times("values"),
            must.map_or_else(String::new, |(_, must)| format!("{must} ×")),
            times("split-points"),
            times("points"),
            times("record-batches"),
            allocations("values"),
            allocations("record-batches"),
            allocations(PUBLISHED),
        ]
    };
    table(&columns, &Corpus::ALL.map(row))
}

/// Tokens and typed values of the three builds.
fn instructions(builds: [&Results; 3]) -> String {
    let mut columns = vec!["corpus".to_owned()];
    for face in ["tokens", "typed values"] {
        columns.extend(BUILDS.map(|(_, name)| format!("{face}, {name}")));
        columns.push("SSE2/AVX2".to_owned());
    }
    let cells = |corpus: Corpus, face: &str| {
        let speeds = builds.map(|results| speed(results, corpus, face));
        let [detected, baseline, _] = speeds;
        let share = detected.zip(baseline).map(|(detected, baseline)| format!("{:.0} %", baseline / detected * 100.0));
        speeds.map(number_or_dash).into_iter().chain([share.unwrap_or_default()]).collect::<Vec<_>>()
    };
    let row = |corpus: Corpus| {
        let cells = ["tokens", "values"].map(|face| cells(corpus, face)).concat();
        [corpus.name().to_owned()].into_iter().chain(cells).collect()
    };
    table(&columns, &Corpus::ALL.map(row))
}

fn names() -> Vec<String> {
    Corpus::ALL.map(|corpus| corpus.name().to_owned()).to_vec()
}

fn faces_chart(results: &Results) -> Chart<'static> {
    let bar = |corpus: Corpus, face: &str| {
        let goal = goal_of(corpus, face);
        let marks = [goal.map(|goal| goal.must), goal.map(|goal| goal.stretch)];
        Bar { value: speed(results, corpus, face), marks }
    };
    let series =
        CHARTED.map(|(face, name)| Series { name, bars: Corpus::ALL.map(|corpus| bar(corpus, face)).to_vec() });
    Chart {
        title: "Line protocol on one core",
        unit: "MB/s",
        marks: ["must", "stretch"],
        groups: names(),
        series: series.into(),
    }
}

fn builds_chart(builds: [&Results; 3]) -> Chart<'static> {
    let bar = |results: &Results, corpus: Corpus| Bar { value: speed(results, corpus, "values"), marks: [None; 2] };
    let series = BUILDS
        .into_iter()
        .zip(builds)
        .map(|((_, name), results)| Series { name, bars: Corpus::ALL.map(|corpus| bar(results, corpus)).to_vec() });
    Chart {
        title: "Typed values on one core, by instruction set",
        unit: "MB/s",
        marks: ["must", "stretch"],
        groups: names(),
        series: series.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(mb_per_second: f64, allocations: f64) -> Measured {
        let best_ns = 7_000.0 * 1e3 / mb_per_second;
        let (elements, bytes) = (Some(100.0), Some(7_000.0));
        Measured { best_ns, median_ns: best_ns, elements, bytes, allocations: Some(allocations) }
    }

    fn results() -> Results {
        Results::of([
            ("lp_parse/short/tokens", at(3_500.0, 0.0)),
            ("lp_parse/short/values", at(2_100.0, 0.0)),
            ("lp_parse/short/influxdb-line-protocol", at(140.0, 1.9)),
        ])
    }

    fn row(table: &str, name: &str) -> Vec<String> {
        super::super::table::cells(table).find(|row| row.first().is_some_and(|first| first == name)).unwrap_or_default()
    }

    #[test]
    fn a_row_has_the_speed_the_must_and_the_time_of_each_face() {
        let table = speeds(&results(), &FACES);
        assert_eq!(row(&table, "short")[1..4], ["3,500 (≥ 3,500); 20.0 ns", "–", "2,100 (≥ 1,900); 33.3 ns"]);
        assert_eq!(row(&table, "sparse").len(), FACES.len() + 1);
    }

    #[test]
    fn ratios_are_to_the_published_parser_of_the_same_run() {
        let want = ["short", "15.0 ×", "12 ×", "–", "–", "–", "0", "–", "1.90"];
        assert_eq!(row(&ratios(&results()), "short"), want);
    }

    #[test]
    fn builds_are_compared_by_face() {
        let slower = Results::of([("lp_parse/short/values", at(1_890.0, 0.0))]);
        let table = instructions([&results(), &slower, &Results::default()]);
        let want = ["short", "3,500", "–", "–", "", "2,100", "1,890", "–", "90 %"];
        assert_eq!(row(&table, "short"), want);
    }

    #[test]
    fn every_goal_is_one_that_can_be_reached() {
        for goal in GOALS {
            assert!(goal.must < goal.stretch, "{goal:?}");
            assert!(CHARTED.iter().any(|(face, _)| *face == goal.face), "{goal:?}");
        }
    }
}

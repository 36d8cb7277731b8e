//! The figures of the other benches: a table each, and a chart of those whose bars are of one size.
//!
//! The median counts here: the fastest sample is one without a flush and with an idle disk.

use std::io;

use super::{
    chart::{Bar, Chart, Series},
    document::Document,
    invalid,
    results::{Measured, Results},
    table::{number, table},
};

/// The title of a bench's chart. `log` has none: its times differ ten thousandfold.
fn title(bench: &str) -> Option<&'static str> {
    match bench {
        "decode" => Some("One thread, requests of 10,000 points"),
        "ingest" => Some("Eight threads into one engine, 1,000 points a request"),
        "flush" => Some("From memory to Parquet"),
        "logs" => Some("Log rows to Parquet, by the writer on its own"),
        "query" => Some("SQL over a day of host metrics"),
        _ => None,
    }
}

/// Writes the table of one bench and returns its chart, if it has one.
pub(super) fn redraw(bench: &str, results: &Results, document: &mut Document) -> io::Result<Vec<(String, String)>> {
    let measured: Vec<_> = results.group(bench).collect();
    if measured.is_empty() {
        return Err(invalid(format!("there are no results of the bench {bench}")));
    }
    document.replace(bench, &times(&measured))?;
    let charts = title(bench).map(|title| (format!("{bench}.svg"), chart(title, &measured).to_svg()));
    Ok(charts.into_iter().collect())
}

/// Cost of a point where the bench says how many points an iteration has, else the time of an
/// iteration.
fn times(measured: &[(&str, &Measured)]) -> String {
    if measured.iter().all(|(_, measured)| measured.elements.is_some()) {
        let row = |(name, measured): &(&str, &Measured)| {
            let elements = measured.elements.unwrap_or_default();
            let cost = |ns: f64| number(ns / elements);
            let rate = format!("{} M", number(elements * 1e3 / measured.median_ns));
            vec![(*name).to_owned(), cost(measured.median_ns), cost(measured.best_ns), rate]
        };
        let rows: Vec<_> = measured.iter().map(row).collect();
        return table(&["bench", "median ns a point", "best", "median, points/s"], &rows);
    }
    let duration = |ns: f64| format!("{} ms", number(ns / 1e6));
    let row = |(name, measured): &(&str, &Measured)| {
        vec![(*name).to_owned(), duration(measured.median_ns), duration(measured.best_ns)]
    };
    table(&["bench", "median", "best"], &measured.iter().map(row).collect::<Vec<_>>())
}

/// One bar for each bench: points a second in millions, or milliseconds.
fn chart<'a>(title: &'a str, measured: &[(&'a str, &Measured)]) -> Chart<'a> {
    let in_points = measured.iter().all(|(_, measured)| measured.elements.is_some());
    let value = |measured: &Measured| match measured.elements {
        Some(elements) if in_points => elements * 1e3 / measured.median_ns,
        _ => measured.median_ns / 1e6,
    };
    // Of `lp/short/disk` the last part tells the bars of a group apart; a name of one part is a
    // group of one bar.
    let split = |name: &'a str| name.rsplit_once('/').unwrap_or((name, "median"));
    let (mut groups, mut kinds) = (Vec::new(), Vec::new());
    for (name, _) in measured {
        let (group, kind) = split(name);
        if !groups.contains(&group) {
            groups.push(group);
        }
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let bar = |group: &str, kind: &str| {
        let found = measured.iter().find(|(name, _)| split(name) == (group, kind));
        Bar { value: found.map(|(_, measured)| value(measured)), marks: [None; 2] }
    };
    let series =
        kinds.iter().map(|kind| Series { name: kind, bars: groups.iter().map(|group| bar(group, kind)).collect() });
    Chart {
        title,
        unit: if in_points { "million points/s" } else { "ms" },
        marks: ["must", "goal"],
        series: series.collect(),
        groups: groups.into_iter().map(str::to_owned).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(best_ns: f64, elements: Option<f64>) -> Measured {
        Measured { best_ns, median_ns: best_ns * 2.0, elements, bytes: None, allocations: None }
    }

    #[test]
    fn points_have_a_cost_and_a_rate() {
        let one = of(1_000.0, Some(10.0));
        let want = "| bench | median ns a point | best | median, points/s |\n| --- | --- | --- | --- |\n\
                    | lp/short | 200 | 100 | 5.00 M |\n";
        assert_eq!(times(&[("lp/short", &one)]), want);
    }

    #[test]
    fn what_has_no_points_has_a_time() {
        let one = of(2_500_000.0, None);
        let want = "| bench | median | best |\n| --- | --- | --- |\n| count | 5.00 ms | 2.50 ms |\n";
        assert_eq!(times(&[("count", &one)]), want);
    }

    #[test]
    fn bars_of_one_group_differ_in_the_last_part_of_their_names() {
        let (slow, fast) = (of(4_000.0, Some(8.0)), of(1_000.0, Some(8.0)));
        let benches = [("lp/short/disk", &slow), ("lp/short/memory", &fast), ("lp/tsbs/disk", &slow)];
        let chart = chart("ingest", &benches);
        assert_eq!(chart.groups, ["lp/short", "lp/tsbs"]);
        assert_eq!(chart.series.iter().map(|series| series.name).collect::<Vec<_>>(), ["disk", "memory"]);
        let values: Vec<Vec<_>> =
            chart.series.iter().map(|series| series.bars.iter().map(|bar| bar.value).collect()).collect();
        assert_eq!(values, [vec![Some(1.0), Some(1.0)], vec![Some(4.0), None]]);
    }
}

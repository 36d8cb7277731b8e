//! The figures of the other benches: one table each, and a chart of those that have a unit in common.

use std::io;

use super::{
    chart::{Bar, Chart, Series},
    document::Document,
    invalid,
    results::{Measured, Results},
    table::{number, table},
};

/// Writes the table of one bench and returns its chart.
pub(super) fn redraw(bench: &str, results: &Results, document: &mut Document) -> io::Result<Vec<(String, String)>> {
    let measured: Vec<_> = results.group(bench).collect();
    if measured.is_empty() {
        return Err(invalid(format!("there are no results of the bench {bench}")));
    }
    document.replace(bench, &times(&measured))?;
    Ok(vec![(format!("{bench}.svg"), chart(bench, &measured).to_svg())])
}

/// Time of an iteration, or cost of a point where the bench says how many points an iteration has.
fn times(measured: &[(&str, &Measured)]) -> String {
    let row = |(name, measured): &(&str, &Measured)| {
        let mut cells = vec![(*name).to_owned()];
        match measured.elements {
            Some(elements) => cells.extend([
                number(measured.best_ns / elements),
                number(measured.median_ns / elements),
                format!("{} M", number(elements * 1e3 / measured.best_ns)),
            ]),
            None => cells.extend([duration(measured.best_ns), duration(measured.median_ns), String::new()]),
        }
        cells
    };
    let columns = if measured.iter().any(|(_, measured)| measured.elements.is_some()) {
        ["", "best ns a point", "median", "best, points/s"]
    } else {
        ["", "best", "median", ""]
    };
    let rows: Vec<_> = measured.iter().map(row).collect();
    let used = if columns.last() == Some(&"") { 3 } else { 4 };
    let rows: Vec<_> = rows.into_iter().map(|row| row.into_iter().take(used).collect()).collect();
    table(columns.get(..used).unwrap_or_default(), &rows)
}

fn duration(ns: f64) -> String {
    format!("{} ms", number(ns / 1e6))
}

/// One bar for each bench: points a second in millions, or milliseconds.
fn chart<'a>(bench: &'a str, measured: &[(&'a str, &Measured)]) -> Chart<'a> {
    let in_points = measured.iter().all(|(_, measured)| measured.elements.is_some());
    let value = |measured: &Measured| match measured.elements {
        Some(elements) if in_points => elements * 1e3 / measured.best_ns,
        _ => measured.best_ns / 1e6,
    };
    // `lp/short/disk`: the last part tells the bars of a group apart, if every name has as many parts.
    let split = |name: &'a str| name.rsplit_once('/').unwrap_or((name, bench));
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
        title: bench,
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
        let want = "|  | best ns a point | median | best, points/s |\n| --- | --- | --- | --- |\n\
                    | lp/short | 100 | 200 | 10.0 M |\n";
        assert_eq!(times(&[("lp/short", &one)]), want);
    }

    #[test]
    fn what_has_no_points_has_a_time() {
        let one = of(2_500_000.0, None);
        let want = "|  | best | median |\n| --- | --- | --- |\n| count | 2.50 ms | 5.00 ms |\n";
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
        assert_eq!(values, [vec![Some(2.0), Some(2.0)], vec![Some(8.0), None]]);
    }
}

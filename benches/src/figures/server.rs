//! The tables of `benches/measure.py`, `upkeep` and `scale`, and a chart of what a point costs the
//! server.

use std::{fs, io, path::Path};

use super::{
    chart::{Bar, Chart, Series},
    document::Document,
    invalid,
    table::{cells, table},
};

/// Path, shape, and the CPU seconds per million points that a durable write must and should cost.
const GOALS: [(&str, &str, f64, f64); 5] = [
    ("msgpack-columnar", "iot", 0.15, 0.08),
    ("msgpack-columnar", "tsbs", 1.0, 0.5),
    ("msgpack-row", "iot", 0.6, 0.3),
    ("lp", "short", 0.30, 0.15),
    ("lp", "tsbs", 1.2, 0.65),
];

/// Takes over every table that there is of a part, and returns the chart of the section `paths`.
pub(super) fn redraw(part: &str, folder: &Path, document: &mut Document) -> io::Result<Vec<(String, String)>> {
    let mut charts = Vec::new();
    let mut files: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    files.sort_unstable_by_key(fs::DirEntry::file_name);
    for file in files {
        let path = file.path();
        let Some(section) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
        let mut table = fs::read_to_string(&path)?;
        if section == "paths" {
            charts.push(("server.svg".to_owned(), chart(&table)?.to_svg()));
            table = with_goals(&table);
        }
        document.replace(&format!("{part}-{section}"), &table)?;
    }
    Ok(charts)
}

/// Adds a column after the costs.
fn with_goals(text: &str) -> String {
    let goal = |path: &str, shape: &str| {
        let goal = GOALS.into_iter().find(|(of, shaped, ..)| *of == path && *shaped == shape);
        goal.map_or_else(String::new, |(_, _, must, goal)| format!("{must} ({goal})"))
    };
    let mut all = cells(text).map(|mut row| {
        let added = match row.as_slice() {
            [path, shape, ..] => goal(path, shape),
            _ => String::new(),
        };
        row.insert(row.len().min(3), added);
        row
    });
    let mut columns = all.next().unwrap_or_default();
    if let Some(column) = columns.get_mut(3) {
        "must (goal)".clone_into(column);
    }
    table(&columns, &all.skip(1).collect::<Vec<_>>())
}

fn chart(table: &str) -> io::Result<Chart<'static>> {
    let (mut groups, mut bars) = (Vec::new(), Vec::new());
    for row in cells(table).skip(2) {
        let [path, shape, cost, ..] = row.as_slice() else { return Err(invalid("a row of paths is too short")) };
        let cost = cost.parse().map_err(|_| invalid(format!("{cost:?} is not a cost")))?;
        let goal = GOALS.into_iter().find(|(of, shaped, ..)| of == path && shaped == shape);
        let marks = [goal.map(|(_, _, must, _)| must), goal.map(|(_, _, _, goal)| goal)];
        groups.push(format!("{path} {shape}"));
        bars.push(Bar { value: Some(cost), marks });
    }
    Ok(Chart {
        title: "What a million points cost the server over HTTP, durable on disk",
        unit: "CPU seconds",
        marks: ["must stay below", "goal"],
        groups,
        series: vec![Series { name: "server, with flush to Parquet", bars }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_has_its_marks() {
        let table = "| path | shape | server CPU s/M points |\n| --- | --- | --- |\n| lp | short | 0.45 |\n| lp | iot | 0.52 |\n";
        let chart = chart(table).unwrap();
        assert_eq!(chart.groups, ["lp short", "lp iot"]);
        let bars: Vec<_> = chart.series[0].bars.iter().map(|bar| (bar.value, bar.marks)).collect();
        assert_eq!(bars, [(Some(0.45), [Some(0.30), Some(0.15)]), (Some(0.52), [None, None])]);
        let want = "| path | shape | server CPU s/M points | must (goal) |\n| --- | --- | --- | --- |\n\
                    | lp | short | 0.45 | 0.3 (0.15) |\n| lp | iot | 0.52 |  |\n";
        assert_eq!(with_goals(table), want);
        assert!(super::chart("| a |\n| --- |\n| x |\n").is_err());
    }
}

//! The tables of `benches/transfer.py`, and a chart of how long ten million integers take by each
//! way.

use std::{fs, io, path::Path};

use super::{
    chart::{Bar, Chart, Series},
    document::Document,
    invalid,
    table::{cells, table},
};

/// Ways, and the seconds that ten million rows must and should take.
const GOALS: [(&str, f64, f64); 8] = [
    ("Flight get, from the buffer", 0.055, 0.040),
    ("Arrow IPC over HTTP, from the buffer", 0.08, 0.045),
    ("Flight get, from files", 0.055, 0.040),
    ("Arrow IPC over HTTP, from files", 0.08, 0.045),
    ("JSON over HTTP, from files", 1.0, 0.5),
    ("Flight put with a time, memory", 0.05, 0.030),
    ("Flight put with a time, process", 0.05, 0.030),
    ("Flight put with a time, disk", 0.05, 0.030),
];

/// The bars of the chart, from REST to Flight: what it is called there, and in the table.
const BARS: [(&str, &str); 8] = [
    ("JSON", "JSON over HTTP, from files"),
    ("NDJSON", "NDJSON over HTTP, from files"),
    ("CSV", "CSV over HTTP, from files"),
    ("MessagePack", "MessagePack over HTTP, from files"),
    ("Parquet", "Parquet over HTTP, from files"),
    ("Arrow IPC", "Arrow IPC over HTTP, from files"),
    ("Flight (gRPC)", "Flight get, from files"),
    ("pyarrow Flight", "pyarrow's server, Flight get"),
];

/// Takes over the tables, and returns the chart.
pub(super) fn redraw(folder: &Path, document: &mut Document) -> io::Result<Vec<(String, String)>> {
    let times = fs::read_to_string(folder.join("times.md"))?;
    document.replace("transfer-times", &with_goals(&times))?;
    document.replace("transfer-exports", &fs::read_to_string(folder.join("exports.md"))?)?;
    Ok(vec![("transfer.svg".to_owned(), chart(&times)?.to_svg())])
}

fn goal(way: &str) -> Option<(f64, f64)> {
    GOALS.into_iter().find(|(of, ..)| *of == way).map(|(_, must, goal)| (must, goal))
}

/// Adds a column after the times.
fn with_goals(text: &str) -> String {
    let mut all = cells(text).map(|mut row| {
        let goal = row.first().and_then(|way| goal(way));
        row.push(goal.map_or_else(String::new, |(must, goal)| format!("{must} ({goal:.3})")));
        row
    });
    let mut columns = all.next().unwrap_or_default();
    if let Some(column) = columns.last_mut() {
        "must (goal) at 10 M".clone_into(column);
    }
    table(&columns, &all.skip(1).collect::<Vec<_>>())
}

fn chart(table: &str) -> io::Result<Chart<'static>> {
    let rows: Vec<_> = cells(table).skip(2).collect();
    let bar = |way: &str| {
        let row = rows.iter().find(|row| row.first().is_some_and(|name| name == way));
        let text = row.and_then(|row| row.last()).ok_or_else(|| invalid(format!("the table has no row {way:?}")))?;
        let seconds = text.split(' ').next().and_then(|seconds| seconds.parse().ok());
        let value = Some(seconds.ok_or_else(|| invalid(format!("{text:?} is no time")))?);
        let (must, goal) = goal(way).unzip();
        Ok(Bar { value, marks: [must, goal] })
    };
    let bars = BARS.into_iter().map(|(_, way)| bar(way)).collect::<io::Result<Vec<_>>>()?;
    Ok(Chart {
        title: "One column of ten million random integers from files to a client, by REST and by gRPC",
        unit: "seconds",
        marks: ["must stay below", "goal"],
        groups: BARS.into_iter().map(|(name, _)| name.to_owned()).collect(),
        series: vec![Series { name: "best of the rounds", bars }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times() -> String {
        let rows: Vec<_> = BARS
            .into_iter()
            .map(|(_, way)| vec![way.to_owned(), "0.001 (0.00)".to_owned(), "0.250 (0.10)".to_owned()])
            .collect();
        table(&["", "1 M rows, s", "10 M rows, s"], &rows)
    }

    #[test]
    fn the_last_column_is_drawn_with_its_marks() {
        let chart = chart(&times()).unwrap();
        assert_eq!((chart.groups.len(), chart.series[0].bars[0].value), (8, Some(0.25)));
        assert_eq!(chart.series[0].bars[0].marks, [Some(1.0), Some(0.5)]);
        assert_eq!(chart.series[0].bars[1].marks, [None, None]);
        assert!(super::chart(&times().replace("0.250", "long")).is_err());
        assert!(super::chart("| a |\n| --- |\n").is_err());
    }

    #[test]
    fn goals_stand_behind_the_times() {
        let with = with_goals(&times());
        assert!(with.starts_with("|  | 1 M rows, s | 10 M rows, s | must (goal) at 10 M |\n"), "{with}");
        assert!(with.contains("| JSON over HTTP, from files | 0.001 (0.00) | 0.250 (0.10) | 1 (0.500) |\n"), "{with}");
    }
}

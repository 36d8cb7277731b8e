//! Markdown tables, and numbers as people read them.

/// Writes a table; every row has as many cells as there are columns.
pub(super) fn table<C: AsRef<str>>(columns: &[C], rows: &[Vec<String>]) -> String {
    let line = |cells: Vec<&str>| {
        let cells: Vec<String> = cells.into_iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let head = line(columns.iter().map(AsRef::as_ref).collect());
    let rule = format!("|{}\n", " --- |".repeat(columns.len()));
    let rows = rows.iter().map(|row| line(row.iter().map(String::as_str).collect()));
    [head, rule].into_iter().chain(rows).collect()
}

/// Reads the cells of a table, its head and its rule included; no cell may hold a bar.
pub(super) fn cells(text: &str) -> impl Iterator<Item = Vec<String>> {
    let inner = |line: &'_ str| line.trim_end().strip_prefix('|')?.strip_suffix('|').map(str::to_owned);
    text.lines().filter_map(inner).map(|line| line.split('|').map(|cell| cell.trim().to_owned()).collect())
}

/// Writes a number with two to four digits that count, and commas between thousands.
pub(super) fn number(value: f64) -> String {
    if value >= 100.0 || value == 0.0 {
        return with_commas(&format!("{value:.0}"));
    }
    let decimals = match value {
        10.0.. => 1,
        0.1.. => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// Writes a number, or a dash where there is none.
pub(super) fn number_or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), number)
}

fn with_commas(digits: &str) -> String {
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_back() {
        let rows = vec![vec!["a".to_owned(), "1,234".to_owned()], vec![String::new(), "–".to_owned()]];
        let text = table(&["name", "value"], &rows);
        assert_eq!(text, "| name | value |\n| --- | --- |\n| a | 1,234 |\n|  | – |\n");
        assert_eq!(cells(&text).skip(2).collect::<Vec<_>>(), rows);
        assert_eq!(cells("no table\n|\n").count(), 0);
    }

    #[test]
    fn a_bar_in_a_cell_does_not_end_it() {
        assert_eq!(table(&["a|b"], &[]), "| a\\|b |\n| --- |\n");
    }

    #[test]
    fn numbers_have_as_many_digits_as_count() {
        let cases = [
            (0.0, "0"),
            (0.056, "0.056"),
            (0.25, "0.25"),
            (7.128, "7.13"),
            (14.66, "14.7"),
            (99.96, "100.0"),
            (3_585.4, "3,585"),
        ];
        for (value, want) in cases {
            assert_eq!(number(value), want);
        }
        assert_eq!(number(1_234_567.0), "1,234,567");
        assert_eq!(number_or_dash(None), "–");
    }
}

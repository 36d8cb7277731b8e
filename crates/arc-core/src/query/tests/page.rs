//! The page docs/sql.md: every example in it answers as it says there.

use super::fake::{
    Cell::{Float, Integer, Tag},
    Home::{Buffer, File},
    Row, Store, TableBuilder,
};

const PAGE: &str = "../../docs/sql.md";

const MINUTE_NS: i64 = 60_000_000_000;

/// 2026-01-31T12:00:00Z.
const NOON_NS: i64 = 1_769_860_800_000_000_000;

/// The tables that the page begins with.
fn store() -> Store {
    let pump = |minute: i64, id, rpm: i64, flow: Option<f64>| -> Row {
        let mut cells = vec![("id", Tag(id)), ("rpm", Integer(rpm))];
        cells.extend(flow.map(|flow| ("flow", Float(flow))));
        (NOON_NS + minute * MINUTE_NS, cells)
    };
    let valve =
        |minute: i64, id, open: f64| (NOON_NS + minute * MINUTE_NS, vec![("id", Tag(id)), ("open", Float(open))]);
    let pumps = TableBuilder::new("pump")
        .part(File, vec![pump(0, "7", 1400, Some(1.5)), pump(0, "9", 1500, Some(2.0)), pump(1, "7", 1450, None)])
        .part(Buffer, vec![pump(4, "7", 1420, Some(2.5)), pump(5, "9", 1530, Some(2.2))]);
    let valves =
        TableBuilder::new("valve").part(Buffer, vec![valve(0, "7", 0.5), valve(3, "7", 0.75), valve(2, "9", 1.0)]);
    let store = Store::new();
    store.put("db", pumps).put("db", valves);
    store
}

/// The statements of the page, each with what stands below it.
fn examples(page: &str) -> Vec<(String, Option<String>)> {
    let mut examples = Vec::new();
    for part in page.split("```sql\n").skip(1) {
        let (sql, behind) = part.split_once("```").unwrap();
        let answer = behind.trim_start().strip_prefix("```text\n").and_then(|text| text.split_once("```"));
        examples.push((sql.trim().to_owned(), answer.map(|(text, _)| text.trim().to_owned())));
    }
    examples
}

/// With `UPDATE_GOLDEN` set, writes the page's answers anew instead, to be read in review.
#[tokio::test]
async fn every_example_answers_as_the_page_says() {
    let store = store();
    let (mut page, mut wrong) = (std::fs::read_to_string(PAGE).unwrap(), Vec::new());
    for (sql, expected) in examples(&page) {
        let statement = crate::Statement::parse(&sql).unwrap();
        if statement.kind().is_change() {
            // Those are for the engine, and tested there; here it is enough that they can be read.
            crate::query::parse_change(&statement).unwrap();
            continue;
        }
        let answer = store.text(&sql).await;
        if expected.as_ref().is_some_and(|expected| *expected != answer) {
            let block = |text: &str| format!("```sql\n{sql}\n```\n\n```text\n{text}\n```");
            page = page.replacen(&block(expected.as_deref().unwrap_or_default()), &block(&answer), 1);
            wrong.push(format!("{sql}\n{answer}\n"));
        } else if answer.starts_with("error") {
            wrong.push(format!("{sql}\n{answer}\n"));
        }
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(PAGE, page).unwrap();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

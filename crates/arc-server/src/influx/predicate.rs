//! The condition of a delete as InfluxDB 2 has it: a range of times, and tags that are equal to something.

use serde_json::Value;

use crate::errors::Failure;

/// What is to be deleted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DeleteRange {
    /// The table, if one is named; else all of them.
    pub(super) table: Option<String>,
    /// Between which times, as SQL has it.
    times: String,
    tags: Vec<TagCondition>,
}

/// Which value a tag is to have, or not to have.
#[derive(Debug, PartialEq, Eq)]
struct TagCondition {
    tag: String,
    is_equal: bool,
    value: String,
}

impl DeleteRange {
    /// Returns the condition as SQL has it, for a table with some columns; `None` if no point of the table
    /// meets it. A tag that the table has not is empty for each point, as InfluxDB has it.
    pub(super) fn condition(&self, has_column: impl Fn(&str) -> bool) -> Option<String> {
        let mut condition = self.times.clone();
        for TagCondition { tag, is_equal, value } in &self.tags {
            if has_column(tag) {
                let operator = if *is_equal { "=" } else { "<>" };
                let (tag, value) = (tag.replace('"', "\"\""), value.replace('\'', "''"));
                condition.push_str(&format!(" AND \"{tag}\" {operator} '{value}'"));
            } else if *is_equal != value.is_empty() {
                return None;
            }
        }
        Some(condition)
    }
}

/// Reads `{"start", "stop", "predicate"}`.
pub(super) fn read(request: &Value) -> Result<DeleteRange, Failure> {
    let time = |key: &str| {
        let text = request.get(key).and_then(Value::as_str).filter(|text| is_time(text));
        let expected =
            || Failure::bad_request(format!("the key {key} is missing, or no time such as 2026-01-31T00:00:00Z"));
        text.ok_or_else(expected)
    };
    let times = format!("time >= '{}' AND time <= '{}'", time("start")?, time("stop")?);
    let (mut table, mut tags) = (None, Vec::new());
    let text = match request.get("predicate") {
        None | Some(Value::Null) => "",
        Some(Value::String(text)) => text.trim(),
        Some(_) => return Err(Failure::bad_request("the key predicate is not a string")),
    };
    let mut rest = text;
    while !rest.is_empty() {
        let (key, tail) = word(rest).ok_or_else(|| unknown(text))?;
        let tail = tail.trim_start();
        let (is_equal, tail) = match (tail.strip_prefix("!="), tail.strip_prefix('=')) {
            (Some(tail), _) => (false, tail),
            (None, Some(tail)) => (true, tail),
            (None, None) => return Err(unknown(text)),
        };
        let (value, tail) = word(tail.trim_start()).ok_or_else(|| unknown(text))?;
        if key == "_measurement" && is_equal && table.is_none() {
            table = Some(value);
        } else if key.starts_with('_') {
            return Err(unknown(text));
        } else {
            tags.push(TagCondition { tag: key, is_equal, value });
        }
        rest = tail.trim_start();
        if rest.is_empty() {
            break;
        }
        let (and, tail) = rest.split_once(char::is_whitespace).ok_or_else(|| unknown(text))?;
        if !and.eq_ignore_ascii_case("and") {
            return Err(unknown(text));
        }
        rest = tail.trim_start();
        if rest.is_empty() {
            return Err(unknown(text));
        }
    }
    Ok(DeleteRange { table, times, tags })
}

/// Splits off a name or a value, in quotes or bare.
fn word(text: &str) -> Option<(String, &str)> {
    if let Some(quote) = text.chars().next().filter(|first| ['"', '\''].contains(first)) {
        let mut word = String::new();
        let mut chars = text.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => word.push(chars.next()?.1),
                c if c == quote => return Some((word, text.get(at + 1..)?)),
                c => word.push(c),
            }
        }
        return None;
    }
    let end = text.find(|c: char| c.is_whitespace() || "=!\"'()".contains(c)).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    (!word.is_empty()).then(|| (word.to_owned(), rest))
}

/// Returns whether a text can be a time of RFC 3339; whether it is one the engine says.
fn is_time(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || b"-+:.TZtz".contains(&byte))
}

fn unknown(text: &str) -> Failure {
    let shown: String = text.chars().take(200).collect();
    Failure::bad_request(format!(
        "the predicate {shown:?} is not understood; expected _measurement=\"name\" and tags, as tag=\"value\", with AND"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_predicate_becomes_a_condition() {
        let times = "time >= '2026-01-01T00:00:00Z' AND time <= '2026-02-01T00:00:00Z'";
        for (predicate, table, more) in [
            ("", None, ""),
            ("_measurement=\"cpu\"", Some("cpu"), ""),
            ("_measurement = 'c p' AND host=\"a\"", Some("c p"), " AND \"host\" = 'a'"),
            ("host=a and \"re gion\" != 'it''s'", None, ""),
            ("host=\"it's\" AND x=\"\\\"\"", None, " AND \"host\" = 'it''s' AND \"x\" = '\"'"),
        ] {
            let request =
                json!({ "start": "2026-01-01T00:00:00Z", "stop": "2026-02-01T00:00:00Z", "predicate": predicate });
            match read(&request) {
                Ok(wanted) => {
                    assert_eq!(wanted.table.as_deref(), table, "{predicate}");
                    assert_eq!(wanted.condition(|_| true).unwrap(), format!("{times}{more}"), "{predicate}");
                }
                Err(failure) => assert!(predicate.contains("it''s"), "{predicate}: {}", failure.message),
            }
        }
    }

    #[test]
    fn what_is_not_understood_deletes_nothing() {
        for predicate in
            ["host", "host=", "=a", "host=a OR host=b", "(host=a)", "_field=\"v\"", "host=a AND", "host=\"a", "a=b c"]
        {
            let request =
                json!({ "start": "2026-01-01T00:00:00Z", "stop": "2026-02-01T00:00:00Z", "predicate": predicate });
            assert!(read(&request).is_err(), "{predicate}");
        }
        for times in
            [json!({}), json!({ "start": "2026-01-01T00:00:00Z" }), json!({ "start": "x' OR '1'='1", "stop": "2026" })]
        {
            assert!(read(&times).is_err(), "{times}");
        }
    }
}

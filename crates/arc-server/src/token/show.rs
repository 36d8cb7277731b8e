//! Tokens as people read them.

use serde_json::Value;

const HEADS: [&str; 6] = ["ID", "NAME", "RIGHTS", "EXPIRES", "LAST USED", "STATE"];

/// Returns what a token may do, as one line.
pub(super) fn sentence(token: &Value) -> String {
    let expires = match text(token, "expires_at") {
        "" => String::new(),
        at => format!(", until {at}"),
    };
    format!("Token {}, {:?}: {}{expires}", id(token), text(token, "name"), rights(token))
}

/// Returns tokens as lines with columns below their heads.
pub(super) fn table(tokens: &[Value]) -> String {
    let mut rows = vec![HEADS.map(str::to_owned)];
    rows.extend(tokens.iter().map(row));
    let width = |at: usize| rows.iter().filter_map(|row| Some(row.get(at)?.chars().count())).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADS.len()).map(width).collect();
    let line = |row: &[String; 6]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn row(token: &Value) -> [String; 6] {
    let or = |key: &str, other: &str| match text(token, key) {
        "" => other.to_owned(),
        text => text.to_owned(),
    };
    let is_enabled = token.get("enabled").and_then(Value::as_bool).unwrap_or_default();
    let state = if is_enabled { "valid" } else { "revoked" };
    let name = text(token, "name").to_owned();
    [id(token), name, rights(token), or("expires_at", "never"), or("last_used_at", "never"), state.to_owned()]
}

fn rights(token: &Value) -> String {
    let grants = token.get("grants").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let list = |grant: &Value, key: &str| {
        let texts = grant.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        texts.collect::<Vec<_>>().join(",")
    };
    let each = grants.iter().map(|grant| match list(grant, "rights").as_str() {
        "" => "nothing".to_owned(),
        rights => format!("{rights} in {}.{}", list(grant, "databases"), list(grant, "tables")),
    });
    let each = each.collect::<Vec<_>>().join("; ");
    if each.is_empty() { "nothing".to_owned() } else { each }
}

fn id(token: &Value) -> String {
    token.get("id").map_or_else(String::new, Value::to_string)
}

fn text<'a>(token: &'a Value, key: &str) -> &'a str {
    token.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{super::sample, *};

    #[test]
    fn a_table_has_a_line_for_each_token() {
        let text = table(&[sample("telegraf", true), sample("old", false)]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "ID  NAME      RIGHTS                  EXPIRES  LAST USED  STATE");
        assert_eq!(lines[1], "3   telegraf  read,write in plant*.*  never    never      valid");
        assert_eq!(lines[2], "3   old       read,write in plant*.*  never    never      revoked");
    }

    #[test]
    fn a_sentence_says_what_a_token_may() {
        let mut token = sample("a", true);
        assert_eq!(sentence(&token), "Token 3, \"a\": read,write in plant*.*");
        token["expires_at"] = "2027-01-01T00:00:00Z".into();
        token["grants"] = Value::Array(Vec::new());
        assert_eq!(sentence(&token), "Token 3, \"a\": nothing, until 2027-01-01T00:00:00Z");
    }
}

//! What of InfluxQL is understood: statements about databases and what is in them.

/// A statement.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Statement {
    ShowDatabases,
    ShowMeasurements {
        /// That of the request if none is named.
        database: Option<String>,
        limit: usize,
    },
    ShowRetentionPolicies {
        database: Option<String>,
    },
    CreateDatabase(String),
    DropDatabase(String),
}

impl Statement {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let words = words(text)?;
        let keys: Vec<String> = words.iter().map(Word::key).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let name = |at: usize| words.get(at).map(|word| word.text.clone());
        match keys.as_slice() {
            ["SHOW", "DATABASES"] => Some(Self::ShowDatabases),
            ["SHOW", "MEASUREMENTS"] => Some(Self::ShowMeasurements { database: None, limit: usize::MAX }),
            ["SHOW", "MEASUREMENTS", "ON", _] => Some(Self::ShowMeasurements { database: name(3), limit: usize::MAX }),
            ["SHOW", "MEASUREMENTS", "LIMIT", limit] => {
                Some(Self::ShowMeasurements { database: None, limit: limit.parse().ok()? })
            }
            ["SHOW", "MEASUREMENTS", "ON", _, "LIMIT", limit] => {
                Some(Self::ShowMeasurements { database: name(3), limit: limit.parse().ok()? })
            }
            ["SHOW", "RETENTION", "POLICIES"] => Some(Self::ShowRetentionPolicies { database: None }),
            ["SHOW", "RETENTION", "POLICIES", "ON", _] => Some(Self::ShowRetentionPolicies { database: name(4) }),
            // Retention policies are given with WITH …; there are none here, so what it says has nothing to change.
            ["CREATE", "DATABASE", _] | ["CREATE", "DATABASE", _, "WITH", ..] => name(2).map(Self::CreateDatabase),
            ["DROP", "DATABASE", _] => name(2).map(Self::DropDatabase),
            _ => None,
        }
    }

    /// Returns whether it changes anything.
    pub(super) fn is_change(&self) -> bool {
        matches!(self, Self::CreateDatabase(_) | Self::DropDatabase(_))
    }
}

/// Splits statements at semicolons that are not within quotes.
pub(super) fn statements(text: &str) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let parts = text.split(move |c: char| {
        let is_end = c == ';' && !is_quoted;
        if c == '"' && !is_escaped {
            is_quoted = !is_quoted;
        }
        is_escaped = c == '\\' && !is_escaped;
        is_end
    });
    parts.filter(|part| !part.trim().is_empty())
}

/// A name or a word of the language.
#[derive(Debug)]
struct Word {
    text: String,
    is_quoted: bool,
}

impl Word {
    /// Returns the word of the language that it may be; none of them is empty.
    fn key(&self) -> String {
        if self.is_quoted { String::new() } else { self.text.to_ascii_uppercase() }
    }
}

/// Splits a statement into words; `None` if there is anything else.
fn words(text: &str) -> Option<Vec<Word>> {
    let mut words = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (text, tail) = identifier(rest)?;
        if !tail.is_empty() && !tail.starts_with(char::is_whitespace) {
            return None;
        }
        words.push(Word { text, is_quoted: rest.starts_with('"') });
        rest = tail.trim_start();
    }
    Some(words)
}

/// Splits off a name, quoted or bare, and returns it with what follows.
fn identifier(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        let (name, tail) = text.split_at(end);
        let bare = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        return bare.then(|| (name.to_owned(), tail));
    };
    let mut name = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((name, quoted.get(at + 1..)?)),
            '\\' => name.push(chars.next()?.1),
            other => name.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_statements_are_understood() {
        let create = |name: &str| Some(Statement::CreateDatabase(name.to_owned()));
        let drop = |name: &str| Some(Statement::DropDatabase(name.to_owned()));
        let tables = |database: Option<&str>, limit| {
            Some(Statement::ShowMeasurements { database: database.map(str::to_owned), limit })
        };
        let policies =
            |database: Option<&str>| Some(Statement::ShowRetentionPolicies { database: database.map(str::to_owned) });
        for (text, expected) in [
            ("SHOW DATABASES", Some(Statement::ShowDatabases)),
            (" show  databases ", Some(Statement::ShowDatabases)),
            ("CREATE DATABASE \"telegraf\"", create("telegraf")),
            ("create database x", create("x")),
            (r#"CREATE DATABASE "a \"b\" c""#, create("a \"b\" c")),
            (r#"CREATE DATABASE "x" WITH DURATION 3d"#, create("x")),
            ("CREATE DATABASE", None),
            ("CREATE DATABASE a b", None),
            ("CREATE DATABASE \"open", None),
            ("CREATE DATABASE a;DROP DATABASE b", None),
            ("SELECT * FROM cpu", None),
            ("DROP DATABASE x", drop("x")),
            ("drop database \"on\"", drop("on")),
            ("DROP DATABASE x y", None),
            ("DROP MEASUREMENT x", None),
            ("\"DROP\" DATABASE x", None),
            ("SHOW MEASUREMENTS", tables(None, usize::MAX)),
            ("SHOW MEASUREMENTS ON \"a b\"", tables(Some("a b"), usize::MAX)),
            ("show measurements limit 100", tables(None, 100)),
            ("SHOW MEASUREMENTS ON a LIMIT 1", tables(Some("a"), 1)),
            ("SHOW MEASUREMENTS LIMIT x", None),
            ("SHOW MEASUREMENTS WITH MEASUREMENT =~ /x/", None),
            ("SHOW RETENTION POLICIES", policies(None)),
            ("SHOW RETENTION POLICIES ON \"a\"", policies(Some("a"))),
            ("SHOW FIELD KEYS", None),
            ("CREATE DATABASE \"a\"b", None),
            ("", None),
        ] {
            assert_eq!(Statement::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn semicolons_part_statements_but_within_quotes() {
        for (text, expected) in [
            ("SHOW DATABASES;", vec!["SHOW DATABASES"]),
            ("a; b ;;", vec!["a", " b "]),
            (r#"CREATE DATABASE "a;b"; c"#, vec![r#"CREATE DATABASE "a;b""#, " c"]),
            (r#""a\";b";c"#, vec![r#""a\";b""#, "c"]),
            (" ; ", vec![]),
        ] {
            assert_eq!(statements(text).collect::<Vec<_>>(), expected, "{text}");
        }
    }
}

//! The statements of InfluxQL that manage databases: what clients and dashboards of InfluxDB 1 send before they write.

use std::time::Duration;

use crate::duration;

const EXPECTED: &str = "InfluxQL is limited to SHOW DATABASES, SHOW MEASUREMENTS, SHOW RETENTION POLICIES, CREATE DATABASE, \
                        DROP DATABASE, DROP MEASUREMENT, CREATE RETENTION POLICY and ALTER RETENTION POLICY; \
                        use SQL at /api/v1/query for the rest";

/// One statement.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Statement {
    ShowDatabases,
    /// Of a database, or of that of the request.
    ShowMeasurements(Option<String>),
    ShowRetentionPolicies(Option<String>),
    CreateDatabase(String, RetentionClause),
    DropDatabase(String),
    DropMeasurement(String),
    /// Of a database, which has one.
    CreateRetentionPolicy(String, RetentionClause),
    AlterRetentionPolicy(String, RetentionClause),
}

/// What a statement says of a retention policy. Copies and shards are for clusters and storage of InfluxDB: they say
/// nothing about which points are kept.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RetentionClause {
    /// How long points are kept: [`Duration::MAX`] for ever.
    pub(super) duration: Option<Duration>,
    pub(super) is_default: bool,
}

impl RetentionClause {
    fn parse(mut words: &[Word]) -> Option<Self> {
        let mut policy = Self::default();
        loop {
            words = match words {
                [] => return Some(policy),
                [key, value, rest @ ..] if key.is("DURATION") => {
                    policy.duration = Some(retention(&value.text)?);
                    rest
                }
                [key, count, rest @ ..] if key.is("REPLICATION") && count.text.parse::<u32>().is_ok() => rest,
                [shard, key, value, rest @ ..] if shard.is("SHARD") && key.is("DURATION") => {
                    retention(&value.text)?;
                    rest
                }
                [key, _, rest @ ..] if key.is("NAME") => rest,
                [key, rest @ ..] if key.is("DEFAULT") => {
                    policy.is_default = true;
                    rest
                }
                _ => return None,
            };
        }
    }
}

/// Reads how long points are kept; no time at all, as `0s`, and `INF` stand for ever.
fn retention(text: &str) -> Option<Duration> {
    if text.eq_ignore_ascii_case("INF") {
        return Some(Duration::MAX);
    }
    duration::parse(text).map(|kept| if kept.is_zero() { Duration::MAX } else { kept })
}

impl Statement {
    pub(super) fn is_change(&self) -> bool {
        !matches!(self, Self::ShowDatabases | Self::ShowMeasurements(_) | Self::ShowRetentionPolicies(_))
    }

    fn parse(words: &[Word]) -> Option<Self> {
        let (keywords, rest) = words.split_at(words.iter().take_while(|word| word.is_keyword()).count());
        let keywords: Vec<String> = keywords.iter().map(|word| word.text.to_ascii_uppercase()).collect();
        let keywords: Vec<&str> = keywords.iter().map(String::as_str).collect();
        match (keywords.as_slice(), rest) {
            (["SHOW", "DATABASES"], []) => Some(Self::ShowDatabases),
            (["SHOW", "MEASUREMENTS"], []) => Some(Self::ShowMeasurements(None)),
            (["SHOW", "RETENTION", "POLICIES"], []) => Some(Self::ShowRetentionPolicies(None)),
            (["SHOW", "MEASUREMENTS", "ON"], [name]) => Some(Self::ShowMeasurements(Some(name.text.clone()))),
            (["SHOW", "RETENTION", "POLICIES", "ON"], [name]) => {
                Some(Self::ShowRetentionPolicies(Some(name.text.clone())))
            }
            (["DROP", "DATABASE"], [name]) => Some(Self::DropDatabase(name.text.clone())),
            (["DROP", "MEASUREMENT"], [name]) => Some(Self::DropMeasurement(name.text.clone())),
            (["CREATE", "DATABASE"], [name]) => {
                Some(Self::CreateDatabase(name.text.clone(), RetentionClause::default()))
            }
            (["CREATE", "DATABASE"], [name, with, policy @ ..]) if with.is("WITH") && !policy.is_empty() => {
                Some(Self::CreateDatabase(name.text.clone(), RetentionClause::parse(policy)?))
            }
            (["CREATE", "RETENTION", "POLICY"], [_, on, database, policy @ ..]) if on.is("ON") => {
                let policy = RetentionClause::parse(policy).filter(|policy| policy.duration.is_some())?;
                Some(Self::CreateRetentionPolicy(database.text.clone(), policy))
            }
            (["ALTER", "RETENTION", "POLICY"], [_, on, database, policy @ ..]) if on.is("ON") && !policy.is_empty() => {
                Some(Self::AlterRetentionPolicy(database.text.clone(), RetentionClause::parse(policy)?))
            }
            _ => None,
        }
    }
}

/// Reads statements, which semicolons part.
pub(super) fn statements(text: &str) -> Result<Vec<Statement>, &'static str> {
    let words = words(text).ok_or(EXPECTED)?;
    let each = words.split(|word| word.text == ";" && !word.is_quoted).filter(|words| !words.is_empty());
    let statements = each.map(Statement::parse).collect::<Option<Vec<_>>>();
    statements.filter(|statements| !statements.is_empty()).ok_or(EXPECTED)
}

/// A name, a keyword, a number or a semicolon.
#[derive(Debug, PartialEq, Eq)]
struct Word {
    text: String,
    is_quoted: bool,
}

/// What may stand before the names of a statement.
const KEYWORDS: [&str; 13] = [
    "SHOW",
    "CREATE",
    "ALTER",
    "DROP",
    "DATABASE",
    "DATABASES",
    "MEASUREMENT",
    "MEASUREMENTS",
    "RETENTION",
    "POLICY",
    "POLICIES",
    "ON",
    "WITH",
];

impl Word {
    fn is(&self, keyword: &str) -> bool {
        !self.is_quoted && self.text.eq_ignore_ascii_case(keyword)
    }

    fn is_keyword(&self) -> bool {
        KEYWORDS.iter().any(|keyword| self.is(keyword))
    }
}

/// Splits a text into words; none if a quote is not closed, or a sign stands where no statement has one.
fn words(text: &str) -> Option<Vec<Word>> {
    let mut words = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(first) = chars.next() {
        let mut word = Word { text: String::new(), is_quoted: first == '"' };
        match first {
            c if c.is_whitespace() => continue,
            ';' => word.text.push(';'),
            '"' => loop {
                match chars.next()? {
                    '"' => break,
                    '\\' => word.text.push(chars.next()?),
                    other => word.text.push(other),
                }
            },
            c if c.is_alphanumeric() || c == '_' => {
                word.text.push(c);
                while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || *c == '_') {
                    word.text.push(c);
                }
            }
            _ => return None,
        }
        words.push(word);
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_manage_databases_are_understood() {
        let create = |name: &str| Statement::CreateDatabase(name.to_owned(), RetentionClause::default());
        let plant = || "plant".to_owned();
        let days = |days: u64| Some(Duration::from_secs(days * 86_400));
        for (text, expected) in [
            ("SHOW DATABASES", vec![Statement::ShowDatabases]),
            (" show  databases ; ;", vec![Statement::ShowDatabases]),
            ("CREATE DATABASE \"telegraf\"", vec![create("telegraf")]),
            ("create database x; show databases", vec![create("x"), Statement::ShowDatabases]),
            (r#"CREATE DATABASE "a \"b\" c""#, vec![create("a \"b\" c")]),
            (r#"CREATE DATABASE "a;b""#, vec![create("a;b")]),
            (
                r#"CREATE DATABASE "show" WITH DURATION 3d NAME "x""#,
                vec![Statement::CreateDatabase(
                    "show".to_owned(),
                    RetentionClause { duration: days(3), is_default: false },
                )],
            ),
            (
                r#"CREATE RETENTION POLICY "a week" ON plant DURATION 1w REPLICATION 1 SHARD DURATION 1h DEFAULT"#,
                vec![Statement::CreateRetentionPolicy(
                    plant(),
                    RetentionClause { duration: days(7), is_default: true },
                )],
            ),
            (
                "ALTER RETENTION POLICY autogen ON plant DURATION INF",
                vec![Statement::AlterRetentionPolicy(
                    plant(),
                    RetentionClause { duration: Some(Duration::MAX), is_default: false },
                )],
            ),
            ("SHOW MEASUREMENTS", vec![Statement::ShowMeasurements(None)]),
            ("SHOW MEASUREMENTS ON plant", vec![Statement::ShowMeasurements(Some(plant()))]),
            ("SHOW RETENTION POLICIES ON \"plant\"", vec![Statement::ShowRetentionPolicies(Some(plant()))]),
            ("DROP DATABASE plant", vec![Statement::DropDatabase(plant())]),
            ("drop measurement plant", vec![Statement::DropMeasurement(plant())]),
        ] {
            assert_eq!(statements(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn all_else_is_refused_with_what_there_is() {
        for text in [
            "",
            " ; ",
            "CREATE DATABASE",
            "CREATE DATABASE a b",
            "CREATE DATABASE \"open",
            "CREATE DATABASE a WITH",
            "CREATE DATABASE a WITH DURATION 3",
            "CREATE DATABASE a WITH DURATION",
            "CREATE DATABASE a DURATION 3d",
            "CREATE RETENTION POLICY x ON a REPLICATION 1 DEFAULT",
            "CREATE RETENTION POLICY x DURATION 1d",
            "ALTER RETENTION POLICY x ON a",
            "ALTER RETENTION POLICY x ON a REPLICATION many",
            "DROP RETENTION POLICY x ON a",
            "CREATE DATABASE a;DROP SERIES FROM b",
            "SHOW MEASUREMENTS ON",
            "SHOW MEASUREMENTS WITH MEASUREMENT =~ /a/",
            "SHOW MEASUREMENTS LIMIT 1",
            "SELECT * FROM cpu",
            "DROP DATABASE a.b",
            "DROP DATABASE a, b",
        ] {
            assert_eq!(statements(text), Err(EXPECTED), "{text}");
        }
    }

    #[test]
    fn points_are_kept_for_a_time_or_for_ever() {
        for (text, expected) in [
            ("1h30m", Some(Duration::from_secs(5_400))),
            ("inf", Some(Duration::MAX)),
            ("0s", Some(Duration::MAX)),
            ("", None),
            ("3", None),
        ] {
            assert_eq!(retention(text), expected, "{text}");
        }
    }
}

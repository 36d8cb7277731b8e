//! The statements of InfluxQL that manage databases: what clients and dashboards of InfluxDB 1 send before they write.

const EXPECTED: &str = "InfluxQL is limited to SHOW DATABASES, SHOW MEASUREMENTS, SHOW RETENTION POLICIES, CREATE DATABASE, \
                        DROP DATABASE and DROP MEASUREMENT; use SQL at /api/v1/query for the rest";

/// One statement.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Statement {
    ShowDatabases,
    /// Of a database, or of that of the request.
    ShowMeasurements(Option<String>),
    ShowRetentionPolicies(Option<String>),
    CreateDatabase(String),
    DropDatabase(String),
    DropMeasurement(String),
}

impl Statement {
    pub(super) fn is_change(&self) -> bool {
        matches!(self, Self::CreateDatabase(_) | Self::DropDatabase(_) | Self::DropMeasurement(_))
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
            // Retention policies are given with WITH …: how long points are kept is set elsewhere.
            (["CREATE", "DATABASE"], [name, tail @ ..]) if tail.first().is_none_or(|word| word.is("WITH")) => {
                Some(Self::CreateDatabase(name.text.clone()))
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
const KEYWORDS: [&str; 11] = [
    "SHOW",
    "CREATE",
    "DROP",
    "DATABASE",
    "DATABASES",
    "MEASUREMENT",
    "MEASUREMENTS",
    "RETENTION",
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
        let create = |name: &str| Statement::CreateDatabase(name.to_owned());
        let plant = || "plant".to_owned();
        for (text, expected) in [
            ("SHOW DATABASES", vec![Statement::ShowDatabases]),
            (" show  databases ; ;", vec![Statement::ShowDatabases]),
            ("CREATE DATABASE \"telegraf\"", vec![create("telegraf")]),
            ("create database x; show databases", vec![create("x"), Statement::ShowDatabases]),
            (r#"CREATE DATABASE "a \"b\" c""#, vec![create("a \"b\" c")]),
            (r#"CREATE DATABASE "a;b""#, vec![create("a;b")]),
            (r#"CREATE DATABASE "show" WITH DURATION 3d NAME "x""#, vec![create("show")]),
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
}

//! `CREATE SNAPSHOT`, `DROP SNAPSHOT` and `RESTORE TABLE`, which the parser does not know.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{
    change::Change,
    statement::{Statement, refuse},
};
use crate::Result;

/// What a table is to be restored to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RestorePoint {
    /// A time, as the query that computes it.
    Time(String),
    /// That of a snapshot.
    Snapshot(String),
}

/// Returns what a statement asks for if it is one of these.
pub(super) fn parse(statement: &Statement) -> Option<Result<Change>> {
    let mut words = StatementWords::new(statement.tokens());
    if words.take("create") && words.take("snapshot") {
        return Some(create(words));
    }
    let mut words = StatementWords::new(statement.tokens());
    if words.take("drop") && words.take("snapshot") {
        return Some(drop_of(words));
    }
    let mut words = StatementWords::new(statement.tokens());
    words.take("restore").then(|| restore(words))
}

fn create(mut words: StatementWords<'_>) -> Result<Change> {
    let if_not_exists = words.take("if") && words.take("not") && words.take("exists");
    match (words.name(), words.is_over()) {
        (Some(name), true) => Ok(Change::CreateSnapshot { name, if_not_exists }),
        _ => refuse("CREATE SNAPSHOT takes IF NOT EXISTS and a name, and nothing else"),
    }
}

fn drop_of(mut words: StatementWords<'_>) -> Result<Change> {
    let if_exists = words.take("if") && words.take("exists");
    match (words.name(), words.is_over()) {
        (Some(name), true) => Ok(Change::DropSnapshot { name, if_exists }),
        _ => refuse("DROP SNAPSHOT takes IF EXISTS and a name, and nothing else"),
    }
}

fn restore(mut words: StatementWords<'_>) -> Result<Change> {
    const USAGE: &str = "RESTORE takes TABLE, a name, and AS OF a time, or AS OF SNAPSHOT and its name";
    if !words.take("table") {
        return refuse(USAGE);
    }
    let Some(first) = words.name() else { return refuse(USAGE) };
    let second = if words.take_period() { words.name().map(Some) } else { Some(None) };
    let Some(second) = second else { return refuse(USAGE) };
    if !(words.take("as") && words.take("of")) {
        return refuse(USAGE);
    }
    let (database, table) = match second {
        Some(table) => (Some(first), table),
        None => (None, first),
    };
    let to = if words.take("snapshot") {
        match (words.name(), words.is_over()) {
            (Some(name), true) => RestorePoint::Snapshot(name),
            _ => return refuse(USAGE),
        }
    } else {
        if words.any_of(&["select", "from", "table", "values", "with"]) {
            return refuse(
                "RESTORE takes a constant time, such as '2026-01-31T12:00:00Z' or now() - INTERVAL '1 hour'",
            );
        }
        let time = words.rest();
        if time.is_empty() {
            return refuse(USAGE);
        }
        RestorePoint::Time(format!("SELECT CAST(({time}) AS TIMESTAMP(9)) AS \"as of\""))
    };
    Ok(Change::Restore { database, table, to })
}

/// The words of a statement, from the first that was not taken.
struct StatementWords<'a> {
    tokens: Vec<&'a Token>,
    next: usize,
}

impl<'a> StatementWords<'a> {
    fn new(tokens: &'a [TokenWithSpan]) -> Self {
        let mut tokens: Vec<&Token> =
            tokens.iter().map(|token| &token.token).filter(|token| !matches!(token, Token::Whitespace(_))).collect();
        while tokens.pop_if(|token| matches!(token, Token::SemiColon | Token::EOF)).is_some() {}
        Self { tokens, next: 0 }
    }

    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.next).copied()
    }

    /// Takes a keyword if it comes next.
    fn take(&mut self, keyword: &str) -> bool {
        let is_next = matches!(self.peek(), Some(Token::Word(word))
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(keyword));
        self.next += usize::from(is_next);
        is_next
    }

    fn take_period(&mut self) -> bool {
        let is_next = matches!(self.peek(), Some(Token::Period));
        self.next += usize::from(is_next);
        is_next
    }

    /// Takes a name, in quotes of any kind or none.
    fn name(&mut self) -> Option<String> {
        let name = match self.peek()? {
            Token::Word(word) => word.value.clone(),
            Token::SingleQuotedString(text) => text.clone(),
            _ => return None,
        };
        self.next += 1;
        Some(name)
    }

    fn is_over(&self) -> bool {
        self.next >= self.tokens.len()
    }

    /// Returns whether one of some keywords is still to come.
    fn any_of(&self, keywords: &[&str]) -> bool {
        self.tokens.iter().skip(self.next).any(|token| {
            matches!(token, Token::Word(word) if word.quote_style.is_none()
                && keywords.iter().any(|keyword| word.value.eq_ignore_ascii_case(keyword)))
        })
    }

    /// Takes all that is left, as text.
    fn rest(&mut self) -> String {
        let rest = self.tokens.get(self.next..).unwrap_or_default();
        self.next = self.tokens.len();
        rest.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(sql: &str) -> Option<Result<Change>> {
        parse(&Statement::parse(sql).unwrap())
    }

    #[test]
    fn statements_about_snapshots_are_known_by_their_first_words() {
        let create = |name: &str, if_not_exists| Change::CreateSnapshot { name: name.into(), if_not_exists };
        let drop = |name: &str, if_exists| Change::DropSnapshot { name: name.into(), if_exists };
        let restore = |database: Option<&str>, to| Change::Restore {
            database: database.map(str::to_owned),
            table: "t".into(),
            to,
        };
        let time = |time: &str| RestorePoint::Time(format!("SELECT CAST(({time}) AS TIMESTAMP(9)) AS \"as of\""));
        let cases = [
            ("create snapshot Before;", create("Before", false)),
            ("/* a */ CREATE SNAPSHOT IF NOT EXISTS \"a b\"", create("a b", true)),
            ("DROP SNAPSHOT s", drop("s", false)),
            ("drop snapshot if exists 's'", drop("s", true)),
            ("RESTORE TABLE t AS OF '2026-01-31'", restore(None, time("'2026-01-31'"))),
            (
                "restore table d.t as of now() - INTERVAL '1 hour';",
                restore(Some("d"), time("now ( ) - INTERVAL '1 hour'")),
            ),
            ("RESTORE TABLE t AS OF SNAPSHOT s", restore(None, RestorePoint::Snapshot("s".into()))),
        ];
        for (sql, expected) in cases {
            assert_eq!(parsed(sql).unwrap().unwrap(), expected, "{sql}");
        }
        for sql in ["CREATE SNAPSHOT", "CREATE SNAPSHOT a b", "DROP SNAPSHOT 1", "RESTORE t", "RESTORE TABLE t AS OF"] {
            assert!(parsed(sql).unwrap().is_err(), "{sql}");
        }
        for sql in ["SELECT 1", "CREATE TABLE snapshot (time TIMESTAMP)", "DROP TABLE snapshot", "SHOW SNAPSHOTS"] {
            assert!(parsed(sql).is_none(), "{sql}");
        }
    }
}

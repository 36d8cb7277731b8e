//! From text to one parsed statement: what it asks for, and whether it is too deep to plan.
//!
//! Owns the only call of the parser, for statements that read and for those that change data alike.

mod levels;

use std::{ops::ControlFlow, sync::Arc};

use arrow::array::RecordBatch;
use datafusion::sql::{
    parser::{DFParserBuilder, Statement as Parsed},
    sqlparser::{
        ast::{self, Ident, ObjectName, ShowStatementIn, ShowStatementInParentType, ShowStatementOptions, Visitor},
        dialect::GenericDialect,
        keywords::Keyword,
        tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Word},
    },
};

use self::levels::{depth, subscripts, type_levels};
use super::{asof, dialect::Limited, error, local::LocalTables, parameters, walk};
use crate::{AccessScope, Error, Result};

/// Longest statement accepted, in bytes.
pub(super) const MAX_SQL_BYTES: usize = 1 << 20;

/// Most words, numbers, texts and signs of a statement: each takes a few hundred bytes while it is
/// parsed, however short.
const MAX_TOKENS: usize = 1 << 18;

/// Levels of nested expressions and subqueries that the parser follows.
pub(super) const MAX_NESTING: usize = 200;

/// Operators and keywords that may follow each other without a comma: each can make the parsed tree
/// one level deeper.
const MAX_CHAIN: usize = 4_000;

/// Levels of a type, and subscripts that follow each other. Whoever reads a type goes down it, level by level.
pub(super) const MAX_TYPE_LEVELS: usize = 32;

/// Tables that one statement may name, counting each mention.
const MAX_RELATIONS: usize = 512;

/// One statement: its text, cut into words once, and what kind it is. Every door of SQL takes one.
///
/// Its grammar is looked at where there is stack for it: when it is planned or executed.
///
/// ```
/// use arc_core::{Statement, StatementKind};
///
/// assert_eq!(Statement::parse("/* no longer needed */ drop table cpu")?.kind(), StatementKind::Drop);
/// assert_eq!(Statement::parse("SELECT 'DROP TABLE cpu'")?.kind(), StatementKind::Query);
/// # Ok::<(), arc_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Statement {
    text: Arc<str>,
    tokens: Arc<Vec<TokenWithSpan>>,
    kind: StatementKind,
    /// What of the store it may see; all of it if there is none.
    scope: Option<AccessScope>,
    /// Most bytes of memory that its answer may take; as many as any query's if there is none.
    memory_limit: Option<usize>,
    /// The caller's own tables, which no other statement sees.
    local: LocalTables,
}

/// What a statement asks for, by the word that it begins with. Whether it is well formed shows when
/// it is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StatementKind {
    /// To read; also anything that is no statement known here, which planning refuses.
    Query,
    /// `SHOW`.
    Show,
    /// `INSERT`, for [`Engine::run`](crate::Engine::run), as are those below.
    Insert,
    /// `CREATE`.
    Create,
    /// `DELETE`.
    Delete,
    /// `DROP`.
    Drop,
    /// `RESTORE`.
    Restore,
}

impl StatementKind {
    /// Returns whether such a statement changes data: whether it is one for
    /// [`Engine::run`](crate::Engine::run) and not for [`Engine::query`](crate::Engine::query).
    ///
    /// ```
    /// use arc_core::Statement;
    ///
    /// assert!(Statement::parse("DELETE FROM pump")?.kind().is_change());
    /// assert!(!Statement::parse("SELECT * FROM pump")?.kind().is_change());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_change(self) -> bool {
        self.adds() || matches!(self, Self::Delete | Self::Drop | Self::Restore)
    }

    /// Returns whether such a statement changes data, and takes nothing away.
    #[must_use]
    pub fn adds(self) -> bool {
        matches!(self, Self::Insert | Self::Create)
    }

    fn of(tokens: &[TokenWithSpan]) -> Self {
        let first = tokens.iter().map(|token| &token.token).find(|token| !matches!(token, Token::Whitespace(_)));
        match first {
            Some(Token::Word(word)) if word.quote_style.is_none() => match word.keyword {
                Keyword::SHOW => Self::Show,
                Keyword::INSERT => Self::Insert,
                Keyword::CREATE => Self::Create,
                Keyword::DELETE => Self::Delete,
                Keyword::DROP => Self::Drop,
                _ if is_unquoted(word, "restore") => Self::Restore,
                _ => Self::Query,
            },
            _ => Self::Query,
        }
    }
}

impl Statement {
    /// Reads a statement as far as the limits of its length and depth, and its kind.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for a text that is too long or
    /// too deep, or whose quotes do not match.
    pub fn parse(sql: &str) -> Result<Self> {
        if sql.len() > MAX_SQL_BYTES {
            return refuse(format!("the statement is longer than {MAX_SQL_BYTES} bytes"));
        }
        let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location();
        let tokens = tokens.map_err(|e| Error::Sql { reason: e.to_string() })?;
        Self::of(sql, tokens)
    }

    /// Returns the statement of `tokens`, whose text is `text`.
    pub(super) fn of(text: &str, tokens: Vec<TokenWithSpan>) -> Result<Self> {
        let is_word = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
        if tokens.iter().filter(is_word).count() > MAX_TOKENS {
            return refuse(format!("the statement is too large: it has more than {MAX_TOKENS} words and signs"));
        }
        if depth(&tokens) > MAX_CHAIN {
            return refuse(format!("an expression has more than {MAX_CHAIN} operators"));
        }
        if subscripts(&tokens) > MAX_TYPE_LEVELS {
            return refuse(format!("more than {MAX_TYPE_LEVELS} pairs of brackets follow each other"));
        }
        if type_levels(&tokens) > MAX_TYPE_LEVELS {
            return refuse(format!("a type has more than {MAX_TYPE_LEVELS} levels"));
        }
        let kind = StatementKind::of(&tokens);
        let (text, tokens, local) = (text.into(), Arc::new(tokens), LocalTables::default());
        Ok(Self { text, tokens, kind, scope: None, memory_limit: None, local })
    }

    /// Returns what the statement asks for.
    #[must_use]
    pub fn kind(&self) -> StatementKind {
        self.kind
    }

    /// Returns its text with `?` for the values in it, as for a report of a fault.
    ///
    /// ```
    /// let statement = arc_core::Statement::parse("SELECT v*2 FROM m  WHERE host = 'a' -- why")?;
    /// assert_eq!(statement.shape(), "SELECT v * ? FROM m WHERE host = ?");
    /// # Ok::<(), arc_core::Error>(())
    /// ```
    #[must_use]
    pub fn shape(&self) -> String {
        let is_sign = |byte: u8| byte.is_ascii_punctuation() && !b"'\"$".contains(&byte);
        let word = |token: &TokenWithSpan| match &token.token {
            Token::Whitespace(_) => None,
            token @ (Token::Word(_) | Token::Placeholder(_)) => Some(token.to_string()),
            token => Some(token.to_string()).map(|text| if text.bytes().all(is_sign) { text } else { "?".to_owned() }),
        };
        self.tokens.iter().filter_map(word).collect::<Vec<_>>().join(" ")
    }

    /// Has the statement see no more than a scope has; all there is if there is none. What it
    /// changes is not looked at: see [`change_target`](Self::change_target).
    #[must_use]
    pub fn within(mut self, scope: Option<AccessScope>) -> Self {
        self.scope = scope;
        self
    }

    /// Has the statement fail, or spill where it can, once its operators hold this many bytes:
    /// a part of what all queries share ([`Options::query_memory_bytes`](crate::Options)).
    #[must_use]
    pub fn memory_limit(mut self, bytes: Option<usize>) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// Has the statement see rows of the caller as the table `name`, where its database has no
    /// table of that name. Rows stay where they are: nothing is copied or stored.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// use std::sync::Arc;
    ///
    /// use arc_core::Statement;
    /// use arrow::array::{ArrayRef, RecordBatch, StringArray};
    ///
    /// let ids: ArrayRef = Arc::new(StringArray::from(vec!["7", "8"]));
    /// let batch = RecordBatch::try_from_iter([("id", ids)])?;
    /// let statement = Statement::parse("SELECT rpm FROM pump JOIN known USING (id)")?;
    /// let statement = statement.with_table("known", vec![batch])?;
    /// let batches = engine.query("plant", &statement, None).await?.collect().await?;
    /// assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if there is no batch, if not all
    /// have the same columns, or if two columns have one name.
    pub fn with_table(mut self, name: &str, batches: Vec<RecordBatch>) -> Result<Self> {
        self.local.add(name, batches)?;
        Ok(self)
    }

    pub(super) fn local_tables(&self) -> &LocalTables {
        &self.local
    }

    /// Has the statement see the same tables of the caller as another one.
    pub(super) fn with_tables_of(mut self, other: &Self) -> Self {
        self.local = other.local.clone();
        self
    }

    pub(super) fn memory_limit_bytes(&self) -> usize {
        self.memory_limit.unwrap_or(usize::MAX)
    }

    /// Returns what of the store the statement may see; all of it if there is none.
    #[must_use]
    pub fn scope(&self) -> Option<&AccessScope> {
        self.scope.as_ref()
    }

    /// Returns the text of the statement.
    ///
    /// ```
    /// let statement = arc_core::Statement::parse("SELECT 1")?;
    /// assert_eq!(statement.text(), "SELECT 1");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text up to the last word or sign: without the semicolons and comments behind it.
    ///
    /// ```
    /// let statement = arc_core::Statement::parse("SELECT ';' ; -- as asked")?;
    /// assert_eq!(statement.without_end(), "SELECT ';'");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn without_end(&self) -> &str {
        let is_end = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_) | Token::SemiColon);
        let words = self.tokens.iter().rposition(|token| !is_end(token)).map_or(0, |last| last + 1);
        let end = self.tokens.get(words).and_then(|token| offset(&self.text, token.span.start));
        end.and_then(|end| self.text.get(..end)).unwrap_or(&self.text)
    }

    pub(super) fn tokens(&self) -> &[TokenWithSpan] {
        &self.tokens
    }
}

/// Returns the byte at a location that is counted in lines and characters.
pub(super) fn offset(sql: &str, location: Location) -> Option<usize> {
    let (line, column) = (usize::try_from(location.line).ok()?, usize::try_from(location.column).ok()?);
    let before: usize = sql.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    let (within, _) = sql.get(before..)?.char_indices().nth(column.checked_sub(1)?)?;
    Some(before + within)
}

impl PartialEq for Statement {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// What a statement that reads asks for.
#[derive(Debug)]
pub(super) enum ReadRequest {
    /// To be planned, if the plan turns out to be allowed.
    Plan(Box<Parsed>),
    /// `SHOW SNAPSHOTS`.
    ShowSnapshots,
    /// `SHOW DATABASES`.
    ShowDatabases,
    /// `SHOW TABLES` or `SHOW MEASUREMENTS`, of the database named or else the default one.
    ShowTables(Option<String>),
    /// `SHOW COLUMNS`, of a table in the database named or else the default one.
    ShowColumns(Option<String>, String),
    /// `SHOW SERIES`, likewise.
    ShowSeries(Option<String>, String),
}

/// Runs the parser over `tokens`. The only index that does: a parser without the limiter may never
/// end.
pub(super) fn grammar<T>(
    tokens: Vec<TokenWithSpan>,
    parse: impl FnOnce(&Limited, Vec<TokenWithSpan>) -> Result<T>,
) -> Result<T> {
    let dialect = Limited::new(&tokens);
    let parsed = parse(&dialect, tokens);
    if dialect.is_exhausted() {
        return refuse("the statement is too complex: it takes the parser too many attempts");
    }
    parsed
}

/// Parses a statement that reads.
///
/// Deep input uses much stack, so call this where there is much.
pub(super) fn request(statement: &Statement) -> Result<ReadRequest> {
    let mut tokens = statement.tokens().to_vec();
    if is_bare_show(&tokens, "snapshots") {
        return Ok(ReadRequest::ShowSnapshots);
    }
    replace_second_word(&mut tokens, "measurements", "TABLES");
    // What is said of columns can be said of series.
    let of_series = replace_second_word(&mut tokens, "series", "COLUMNS");
    parameters::number(&mut tokens)?;
    asof::spell_out(&mut tokens);
    let mut statements = grammar(tokens, |dialect, tokens| {
        DFParserBuilder::new(tokens)
            .with_dialect(dialect)
            .with_recursion_limit(MAX_NESTING)
            .build()
            .and_then(|mut parser| parser.parse_statements())
            .map_err(error::from_datafusion)
    })?;
    match (statements.pop_front(), statements.is_empty()) {
        (Some(Parsed::Statement(statement)), true) if of_series => match show(*statement) {
            Ok(ReadRequest::ShowColumns(database, table)) => Ok(ReadRequest::ShowSeries(database, table)),
            _ => refuse("SHOW SERIES FROM needs a table, and takes nothing else"),
        },
        (Some(Parsed::Statement(statement)), true) => show(*statement),
        (Some(statement), true) => match explained(&statement) {
            Parsed::Statement(_) => planned(statement),
            other => not_a_query(&other.to_string()),
        },
        (Some(_), false) => refuse("more than one statement"),
        (None, _) => refuse("the statement is empty"),
    }
}

/// Returns what is to be explained, or the statement itself.
fn explained(statement: &Parsed) -> &Parsed {
    let mut statement = statement;
    while let Parsed::Explain(explain) = statement {
        statement = &explain.statement;
    }
    statement
}

pub(super) fn refuse<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::Sql { reason: reason.into() })
}

/// Returns whether the statement is `SHOW` and `word`, and nothing else.
fn is_bare_show(tokens: &[TokenWithSpan], word: &str) -> bool {
    let words = tokens.iter().map(|token| &token.token);
    let words: Vec<&Token> = words.filter(|token| !matches!(token, Token::Whitespace(_) | Token::SemiColon)).collect();
    let is = |token: &Token, text| matches!(token, Token::Word(word) if is_unquoted(word, text));
    matches!(words.as_slice(), [first, second] if is(first, "show") && is(second, word))
}

/// Turns `SHOW` and `word` at the beginning into `SHOW` and `keyword`; returns whether they were
/// there.
fn replace_second_word(tokens: &mut [TokenWithSpan], word: &str, keyword: &str) -> bool {
    let mut words = tokens.iter_mut().filter(|t| !matches!(t.token, Token::Whitespace(_)));
    let is_word = |token: &Token, text| matches!(token, Token::Word(w) if is_unquoted(w, text));
    let (Some(first), Some(second)) = (words.next(), words.next()) else { return false };
    let found = is_word(&first.token, "show") && is_word(&second.token, word);
    if found {
        second.token = Token::make_keyword(keyword);
    }
    found
}

fn is_unquoted(word: &Word, text: &str) -> bool {
    word.quote_style.is_none() && word.value.eq_ignore_ascii_case(text)
}

/// Returns the request of a plain statement: `SHOW` is answered here, everything else is planned.
fn show(statement: ast::Statement) -> Result<ReadRequest> {
    match statement {
        ast::Statement::ShowDatabases { terse: false, history: false, show_options } if is_bare(&show_options) => {
            Ok(ReadRequest::ShowDatabases)
        }
        ast::Statement::ShowTables {
            terse: false,
            history: false,
            extended: false,
            full: false,
            external: false,
            mut show_options,
        } => {
            let show_in = show_options.show_in.take();
            if !is_bare(&show_options) {
                return refuse("SHOW TABLES takes FROM and a database, and nothing else");
            }
            show_in.map(database_named).transpose().map(ReadRequest::ShowTables)
        }
        ast::Statement::ShowColumns { extended: false, full: false, mut show_options } => {
            let show_in = show_options.show_in.take().filter(|_| is_bare(&show_options));
            let needs_a_table =
                || Error::Sql { reason: "SHOW COLUMNS FROM needs a table, and takes nothing else".into() };
            let (database, table) = show_in.as_ref().and_then(table_named).ok_or_else(needs_a_table)?;
            Ok(ReadRequest::ShowColumns(database, table))
        }
        ast::Statement::ShowVariable { .. } | ast::Statement::ShowVariables { .. } => refuse(
            "SHOW of settings is not supported; SHOW knows DATABASES, TABLES, MEASUREMENTS, COLUMNS, \
             SERIES, SNAPSHOTS, FUNCTIONS",
        ),
        ast::Statement::Query(_)
        | ast::Statement::Explain { .. }
        | ast::Statement::ExplainTable { .. }
        | ast::Statement::ShowFunctions { filter: None } => planned(Parsed::Statement(Box::new(statement))),
        other => not_a_query(&other.to_string()),
    }
}

/// Returns the request for a statement whose plan has to be looked at: a query may turn out to
/// write, too.
fn planned(mut statement: Parsed) -> Result<ReadRequest> {
    nest(&mut statement);
    if relations(&statement) > MAX_RELATIONS {
        return refuse(format!("the statement names more than {MAX_RELATIONS} tables"));
    }
    Ok(ReadRequest::Plan(Box::new(statement)))
}

fn nest(statement: &mut Parsed) {
    match statement {
        Parsed::Explain(explain) => nest(&mut explain.statement),
        Parsed::Statement(statement) => asof::nest(statement),
        _ => {}
    }
}

fn not_a_query<T>(statement: &str) -> Result<T> {
    let verb = statement.split_whitespace().next().unwrap_or_default().to_uppercase();
    refuse(format!("{verb} is not allowed: SQL here reads, and nothing else"))
}

/// Counts the names of tables.
struct TableNames(usize);

impl Visitor for TableNames {
    type Break = Error;

    fn pre_visit_relation(&mut self, _: &ObjectName) -> ControlFlow<Error> {
        self.0 += 1;
        ControlFlow::Continue(())
    }
}

/// Returns how often `statement` names a table.
fn relations(statement: &Parsed) -> usize {
    let mut relations = TableNames(0);
    // It ends no walk.
    let _ = walk::read_inner(statement, &mut relations);
    relations.0
}

fn is_bare(options: &ShowStatementOptions) -> bool {
    let ShowStatementOptions { show_in, starts_with, limit, limit_from, filter_position } = options;
    show_in.is_none() && starts_with.is_none() && limit.is_none() && limit_from.is_none() && filter_position.is_none()
}

fn database_named(show_in: ShowStatementIn) -> Result<String> {
    let parent = matches!(
        show_in.parent_type,
        None | Some(ShowStatementInParentType::Database | ShowStatementInParentType::Schema)
    );
    let name = show_in.parent_name.as_ref().filter(|_| parent).and_then(single);
    name.map(|ident| ident.value.clone())
        .ok_or_else(|| Error::Sql { reason: "SHOW TABLES FROM needs a database".into() })
}

fn table_named(show_in: &ShowStatementIn) -> Option<(Option<String>, String)> {
    let name = show_in.parent_name.as_ref()?;
    let mut parts = name.0.iter().map(|part| part.as_ident().map(|ident| ident.value.clone()));
    let (first, second) = (parts.next()??, parts.next());
    match (second, parts.next()) {
        (None, _) => Some((None, first)),
        (Some(second), None) => Some((Some(first), second?)),
        (Some(_), Some(_)) => None,
    }
}

fn single(name: &ObjectName) -> Option<&Ident> {
    match name.0.as_slice() {
        [part] => part.as_ident(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;

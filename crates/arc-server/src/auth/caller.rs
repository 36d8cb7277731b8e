//! Who sends a request, and what they may do.

use std::sync::Arc;

use arc_core::{Access, AccessScope, Engine, Error, Statement, StatementKind, WriteOptions};
use axum::extract::FromRequestParts;
use hyper::{StatusCode, http::request::Parts};

use super::{Rights, limits::Usage, token::Token};
use crate::{
    app::App,
    audit::{INTERNAL, Trail},
    errors::Failure,
};

/// Who sends a request: the owner of a token, or anybody where nobody has to log in.
#[derive(Debug, Clone)]
pub(crate) struct Caller(Option<Holder>);

/// The owner of a token, in one request.
#[derive(Debug, Clone)]
struct Holder {
    token: Arc<Token>,
    /// What the request was let change.
    trail: Arc<Trail>,
}

impl Caller {
    /// Returns whoever it is, where nobody has to log in.
    pub(crate) fn anybody() -> Self {
        Self(None)
    }

    pub(super) fn of(token: Arc<Token>) -> Self {
        Self(Some(Holder { token, trail: Arc::default() }))
    }

    pub(crate) fn token(&self) -> Option<&Arc<Token>> {
        self.0.as_ref().map(|holder| &holder.token)
    }

    /// Returns where changes of the request are noted, if they are.
    pub(crate) fn trail(&self) -> Option<&Trail> {
        self.0.as_ref().map(|holder| &*holder.trail)
    }

    /// Notes what the request was let change, for the audit log.
    pub(crate) fn note(&self, change: impl FnOnce() -> String) {
        if let Some(trail) = self.trail() {
            trail.note(change());
        }
    }

    /// Returns what the caller uses, where that is counted.
    pub(crate) fn usage(&self) -> Option<&Arc<Usage>> {
        self.token().map(|token| &token.usage)
    }

    fn asks(&self, question: impl FnOnce(&Token) -> bool) -> bool {
        self.token().is_none_or(|token| question(token))
    }

    /// Returns whether the caller may do everything there is.
    pub(crate) fn is_admin(&self) -> bool {
        self.asks(|token| token.may_everywhere(Rights::ADMIN))
    }

    /// Returns whether the caller may know that there is such a database.
    pub(crate) fn sees(&self, database: &str) -> bool {
        self.asks(|token| Access::sees(token, database))
    }

    /// Returns whether the caller may read a table, and know its columns.
    pub(crate) fn reads(&self, database: &str, table: &str) -> bool {
        self.asks(|token| token.reads(database, table))
    }

    /// Returns whether the caller has any right for a table.
    pub(crate) fn sees_table(&self, database: &str, table: &str) -> bool {
        self.asks(|token| {
            [Rights::READ, Rights::WRITE, Rights::DELETE].iter().any(|right| token.may(*right, database, table))
        })
    }

    /// Returns the number of the caller's token; `None` where nobody has to log in.
    pub(crate) fn number(&self) -> Option<u64> {
        self.token().map(|token| token.id)
    }

    /// Refuses who may not do everything there is.
    pub(crate) fn check_admin(&self) -> Result<(), Failure> {
        permitted(self.is_admin(), || "Permission denied: admin required".to_owned())?;
        self.note(|| "administer".to_owned());
        Ok(())
    }

    /// Refuses who has a right nowhere.
    pub(crate) fn check(&self, right: Rights) -> Result<(), Failure> {
        permitted(self.asks(|token| token.rights().has(right)), || denied(right))
    }

    /// Refuses who can neither read nor change anything by a statement.
    pub(crate) fn check_statements(&self) -> Result<(), Failure> {
        permitted(self.asks(|token| token.rights() != Rights::default()), || denied(Rights::READ))
    }

    /// Refuses who has a right for no table of a database.
    pub(crate) fn check_in(&self, right: Rights, database: &str) -> Result<(), Failure> {
        permitted(self.asks(|token| token.may_in(right, database)), || in_database(right, database))
    }

    /// Refuses who has not a right for all tables of a database.
    pub(crate) fn check_all_of(&self, right: Rights, database: &str) -> Result<(), Failure> {
        permitted(self.asks(|token| token.may_in_all_of(right, database)), || {
            format!("{} and all of its tables", in_database(right, database))
        })?;
        check_internal(right, database)?;
        if right != Rights::READ {
            self.note(|| format!("{} database {database:?}", right.name()));
        }
        Ok(())
    }

    /// Refuses who has not a right for a table. Reading it and writing points to it are in no audit log.
    pub(crate) fn check_table(&self, right: Rights, database: &str, table: &str) -> Result<(), Failure> {
        permitted(self.asks(|token| token.may(right, database, table)), || of_table(right, database, table))?;
        check_internal(right, database)
    }

    /// Refuses who may not know of a database.
    pub(crate) fn check_sees(&self, database: &str) -> Result<(), Failure> {
        permitted(self.sees(database), || in_database(Rights::READ, database))
    }

    /// Refuses a change of a database, or of a table of it where one is named.
    pub(crate) fn check_target(&self, right: Rights, database: &str, table: Option<&str>) -> Result<(), Failure> {
        match table {
            Some(table) => {
                self.check_table(right, database, table)?;
                self.note(|| format!("{} table {table:?} of database {database:?}", right.name()));
                Ok(())
            }
            None => self.check_all_of(right, database),
        }
    }

    /// Refuses to have a database made by who may not write to all of its tables.
    pub(crate) fn check_makes(&self, engine: &Engine, database: &str) -> Result<(), Failure> {
        if self.asks(|token| token.may_in_all_of(Rights::WRITE, database)) || engine.tables(database).is_ok() {
            return Ok(());
        }
        Err(Error::DatabaseOutOfScope { database: database.to_owned() }.into())
    }

    /// Has a write touch what the caller may write, and refuses it where that is nothing of the database.
    pub(crate) fn limit(&self, database: &str, options: WriteOptions) -> Result<WriteOptions, Failure> {
        self.check_in(Rights::WRITE, database)?;
        check_internal(Rights::WRITE, database)?;
        Ok(match self.token() {
            Some(token) if !token.may_in_all_of(Rights::WRITE, database) => {
                options.scope(AccessScope::new(Arc::clone(token) as _))
            }
            _ => options,
        })
    }

    /// Reads a statement, which will see what the caller may read.
    pub(crate) fn statement(&self, sql: &str) -> Result<Statement, Failure> {
        let scope = match self.token() {
            Some(token) if !token.may_everywhere(Rights::READ) => Some(AccessScope::new(Arc::clone(token) as _)),
            _ => None,
        };
        let memory = self.usage().and_then(|usage| usage.query_memory());
        Ok(Statement::parse(sql)?.within(scope).memory_limit(memory))
    }

    /// Refuses a statement of a kind that the caller may not run, or that changes what the caller may not change.
    pub(crate) async fn check_statement(
        &self,
        engine: &Engine,
        database: &str,
        statement: &Statement,
    ) -> Result<(), Failure> {
        let right = match statement.kind() {
            StatementKind::Insert | StatementKind::Create => Rights::WRITE,
            StatementKind::Delete | StatementKind::Drop | StatementKind::Restore => Rights::DELETE,
            _ => return self.check(Rights::READ),
        };
        if matches!(statement.kind(), StatementKind::Create | StatementKind::Drop | StatementKind::Restore) {
            self.note(|| statement.text().to_owned());
        }
        let may_be_internal = database == INTERNAL || statement.text().to_ascii_lowercase().contains(INTERNAL);
        if !may_be_internal && self.asks(|token| token.may_everywhere(right)) {
            return Ok(());
        }
        self.check(right)?;
        let makes = statement.kind() == StatementKind::Create;
        let (statement, database) = (statement.clone(), database.to_owned());
        let target = tokio::task::spawn_blocking(move || statement.change_target(&database)).await;
        let target = target.map_err(|_| Failure::bug())??;
        if target.is_everything {
            return permitted(self.asks(|token| token.may_everywhere(right)), || {
                format!("{} for all databases", denied(right))
            });
        }
        check_internal(right, &target.database)?;
        if makes {
            self.check_makes(engine, &target.database)?;
        }
        match &target.table {
            Some(table) => self.check_table(right, &target.database, table),
            None => self.check_all_of(right, &target.database),
        }
    }

    /// Returns what a statement's error is for this caller: what they may not read is forbidden, whether it is there or not.
    pub(crate) fn failure(&self, error: Error) -> Failure {
        let denied = match &error {
            Error::TableNotFound { database, table } => self.check_table(Rights::READ, database, table),
            Error::DatabaseNotFound { database } => self.check_sees(database),
            _ => Ok(()),
        };
        denied.err().unwrap_or_else(|| error.into())
    }

    /// Returns whether the caller is who this is; where nobody has to log in, everybody is.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (self.token(), other.token()) {
            (Some(one), Some(other)) => one.id == other.id,
            (None, _) => true,
            (Some(_), None) => false,
        }
    }
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Failure> {
        app.auth.caller(&parts.extensions)
    }
}

/// Refuses changes of what the server keeps for itself; for how long may be changed, within limits.
pub(crate) fn check_internal(right: Rights, database: &str) -> Result<(), Failure> {
    let is_change = right == Rights::WRITE || right == Rights::DELETE;
    permitted(!is_change || database != INTERNAL, || {
        format!("the database {INTERNAL:?} is kept by the server: nobody writes to it or deletes from it")
    })
}

fn permitted(may: bool, why: impl FnOnce() -> String) -> Result<(), Failure> {
    if may { Ok(()) } else { Err(Failure::new(StatusCode::FORBIDDEN, why())) }
}

fn denied(right: Rights) -> String {
    format!("Permission denied: {} required", right.name())
}

fn in_database(right: Rights, database: &str) -> String {
    format!("{} for database {database:?}", denied(right))
}

fn of_table(right: Rights, database: &str, table: &str) -> String {
    format!("{} for table {table:?} of database {database:?}", denied(right))
}

//! The actions of Flight SQL: making and closing prepared statements.

use std::sync::Arc;

use arc_core::{Statement, StatementKind};
use arrow_flight::{
    Action, ActionType,
    sql::{
        ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult,
        Any, ProstMessageExt,
    },
};
use bytes::Bytes;
use prost::Message;

use super::{
    messages::{Handle, schema_bytes},
    query,
    statements::Statements,
    status::unsupported,
};
use crate::{app::App, auth::Caller, errors::Failure};

const CREATE: &str = "CreatePreparedStatement";
const CLOSE: &str = "ClosePreparedStatement";

/// Returns what actions there are.
pub(super) fn all() -> [ActionType; 2] {
    let action = |name: &str, description: &str| ActionType { r#type: name.into(), description: description.into() };
    [
        action(CREATE, "Takes ActionCreatePreparedStatementRequest, returns ActionCreatePreparedStatementResult"),
        action(CLOSE, "Takes ActionClosePreparedStatementRequest, returns nothing"),
    ]
}

/// A client that asks for an action.
#[derive(Debug)]
pub(super) struct ActionClient<'a> {
    pub(super) app: &'a Arc<App>,
    pub(super) statements: &'a Statements,
    pub(super) caller: &'a Caller,
    /// What it works with.
    pub(super) database: String,
    pub(super) keep_dictionaries: bool,
}

/// Does an action; returns what it answers, if anything.
pub(super) async fn run(client: ActionClient<'_>, action: Action) -> Result<Option<Bytes>, Failure> {
    match action.r#type.as_str() {
        CREATE => {
            let asked: ActionCreatePreparedStatementRequest = unpack(&action.body)?;
            no_transaction(asked.transaction_id.as_ref())?;
            let made = create(client, asked.query).await?;
            Ok(Some(made.as_any().encode_to_vec().into()))
        }
        CLOSE => {
            let asked: ActionClosePreparedStatementRequest = unpack(&action.body)?;
            client.statements.remove(&asked.prepared_statement_handle);
            Ok(None)
        }
        "BeginTransaction" | "EndTransaction" | "BeginSavepoint" | "EndSavepoint" => {
            Err(unsupported("there are no transactions: each write is one of its own, stored as a whole or not at all"))
        }
        "CancelQuery" | "CancelFlightInfo" => Err(unsupported("a query is cancelled by closing its stream")),
        other => Err(unsupported(&format!("the action {other:?} is not supported"))),
    }
}

async fn create(client: ActionClient<'_>, sql: String) -> Result<ActionCreatePreparedStatementResult, Failure> {
    let ActionClient { app, statements, caller, database, keep_dictionaries } = client;
    let statement = Handle::new(database, sql);
    let (mut dataset_schema, mut parameter_schema) = (Bytes::new(), Bytes::new());
    let parsed = Statement::parse(&statement.sql)?;
    let kind = parsed.kind();
    let is_insert = kind == StatementKind::Insert;
    if is_insert || !kind.is_change() {
        let described = query::describe(app, caller, statement.clone().query()?, keep_dictionaries).await?;
        // A statement without columns is how clients tell a change from a query.
        dataset_schema = if is_insert { dataset_schema } else { schema_bytes(&described.columns)? };
        parameter_schema = schema_bytes(&described.parameters)?;
    } else {
        caller.check_statement(&app.engine, &statement.database, &parsed).await?;
    }
    let prepared_statement_handle = statements.add(caller.number(), statement);
    Ok(ActionCreatePreparedStatementResult { prepared_statement_handle, dataset_schema, parameter_schema })
}

/// Refuses to be part of a transaction.
pub(super) fn no_transaction(id: Option<&Bytes>) -> Result<(), Failure> {
    match id {
        Some(id) if !id.is_empty() => Err(unsupported("there are no transactions")),
        _ => Ok(()),
    }
}

fn unpack<T: ProstMessageExt>(body: &[u8]) -> Result<T, Failure> {
    let any = Any::decode(body).ok().and_then(|any| any.unpack().ok().flatten());
    any.ok_or_else(|| Failure::bad_request(format!("the body of the action is not a {}", T::type_url())))
}

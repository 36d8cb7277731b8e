//! Commands that are answered from what the server knows, without a statement: one batch each.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow_flight::{FlightData, encode::FlightDataEncoderBuilder, sql::Command};
use futures::{StreamExt, TryStreamExt, stream};
use tonic::Status;

use super::{info, metadata, query::Messages, status::unsupported};
use crate::{app::App, auth::Caller, errors::Failure};

/// Returns the answer to a command about what there is. A server that only reads looks at files for it, on a thread that may
/// wait.
pub(super) async fn answer(app: &Arc<App>, caller: &Caller, command: Command) -> Result<RecordBatch, Failure> {
    if !app.engine.is_reader() {
        return answer_now(app, caller, command);
    }
    let (app, caller) = (Arc::clone(app), caller.clone());
    let answer = tokio::task::spawn_blocking(move || answer_now(&app, &caller, command));
    answer.await.map_err(|_| Failure::bug())?
}

fn answer_now(app: &App, caller: &Caller, command: Command) -> Result<RecordBatch, Failure> {
    match command {
        Command::CommandGetCatalogs(asked) => metadata::catalogs(asked),
        Command::CommandGetDbSchemas(asked) => metadata::databases(&app.engine, caller, asked),
        Command::CommandGetTables(asked) => metadata::tables(&app.engine, caller, asked),
        Command::CommandGetTableTypes(asked) => metadata::table_types(asked),
        Command::CommandGetPrimaryKeys(asked) => metadata::primary_keys(&app.engine, caller, &asked),
        Command::CommandGetExportedKeys(_)
        | Command::CommandGetImportedKeys(_)
        | Command::CommandGetCrossReference(_) => Ok(metadata::no_foreign_keys()),
        Command::CommandGetSqlInfo(asked) => info::sql(asked),
        Command::CommandGetXdbcTypeInfo(asked) => info::types(&asked),
        Command::CommandStatementSubstraitPlan(_) => Err(unsupported("Substrait plans are not supported; SQL is")),
        other => Err(Failure::bad_request(format!("{} is not a command that is answered with rows", other.type_url()))),
    }
}

/// Returns the messages of one batch.
pub(super) fn messages(batch: RecordBatch) -> Messages {
    let encoder = FlightDataEncoderBuilder::new().with_schema(batch.schema());
    let messages = encoder.build(stream::iter([Ok(batch)]));
    messages.map_err(|_| Status::from(Failure::bug())).map_ok(|message: FlightData| message).boxed()
}

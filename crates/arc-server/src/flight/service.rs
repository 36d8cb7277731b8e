//! The calls of the Flight service, one method each: decode, call, encode.

use std::sync::Arc;

use arc_core::Statement;
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest, HandshakeResponse,
    PollInfo, PutResult, Result as ActionResult, SchemaResult, Ticket, flight_service_server::FlightService,
    sql::Command,
};
use axum::body::Body;
use futures::{StreamExt, stream, stream::BoxStream};
use hyper::{HeaderMap, http::Extensions};
use tonic::{Request, Response, Status, Streaming, metadata::MetadataValue};

use super::{
    MAX_ASKED_BYTES, actions,
    changes::{self, Asked},
    incoming::Incoming,
    known,
    messages::{self, Described, Fetched, Handle},
    outgoing, put,
    query::{self, Messages},
    statements::Statements,
    status::unsupported,
    target,
};
use crate::{
    app::App,
    auth::{self, Caller},
    body::Caps,
    errors::Failure,
    query::{change, layout},
};

/// The service; clones share everything.
#[derive(Debug, Clone)]
pub(super) struct Flight {
    app: Arc<App>,
    statements: Arc<Statements>,
}

impl Flight {
    pub(super) fn new(app: &Arc<App>) -> Self {
        Self { app: Arc::clone(app), statements: Arc::default() }
    }

    /// Returns what a descriptor stands for: the columns that it will bring, and the ticket.
    async fn planned(&self, asked: Request<FlightDescriptor>) -> Result<FlightInfo, Failure> {
        let (headers, extensions, descriptor) = asked.into_parts();
        let caller = self.caller(&extensions)?;
        let (database, keep) = (target::database(headers.as_ref())?, layout::keeps_dictionaries(headers.as_ref())?);
        let statement = match messages::described(&descriptor)? {
            Described::Path(path) => messages::select_all(&path, &database)?,
            Described::Command(Command::CommandStatementQuery(asked)) => {
                actions::no_transaction(asked.transaction_id.as_ref())?;
                Handle { database, sql: asked.query, values: Vec::new() }
            }
            Described::Command(Command::CommandPreparedStatementQuery(asked)) => {
                self.statements.get(&asked.prepared_statement_handle)?
            }
            Described::Command(command) => {
                let ticket = Ticket::new(descriptor.cmd.clone());
                let answer = known::answer(&self.app, &caller, command).await?;
                return messages::info(descriptor, &answer.schema(), ticket);
            }
        };
        let ticket = statement.ticket();
        let parsed = caller.statement(&statement.sql)?;
        if parsed.kind().is_change() {
            caller.check_statement(&statement.database, &parsed).await?;
            return messages::info(descriptor, &change::count_column(), ticket);
        }
        let described = query::describe(&self.app, &caller, statement.query()?, keep).await?;
        messages::info(descriptor, &described.columns, ticket)
    }

    /// The call `DoGet`, whose messages are not written by tonic.
    pub(super) async fn get(self, request: axum::extract::Request) -> axum::response::Response {
        let (head, body) = request.into_parts();
        let fetched = match self.app.auth.caller(&head.extensions) {
            Ok(caller) => self.fetch(&caller, &head.headers, body).await,
            Err(failure) => Err(failure),
        };
        match fetched {
            Ok(messages) => outgoing::all(messages),
            Err(failure) => outgoing::failed(failure),
        }
    }

    /// The call `DoPut`, whose messages are not read by tonic.
    pub(super) async fn put(self, request: axum::extract::Request) -> axum::response::Response {
        let (head, body) = request.into_parts();
        let done = match self.app.auth.caller(&head.extensions) {
            Ok(caller) => {
                let sent = put::Head { headers: &head.headers, body };
                put::run(&self.app, &self.statements, &caller, sent).await
            }
            Err(failure) => Err(failure),
        };
        match done {
            Ok(answer) => outgoing::one(&answer),
            Err(failure) => outgoing::failed(failure),
        }
    }

    fn caller(&self, extensions: &Extensions) -> Result<Caller, Failure> {
        self.app.auth.caller(extensions)
    }

    async fn fetch(&self, caller: &Caller, headers: &HeaderMap, body: Body) -> Result<Messages, Failure> {
        let caps = Caps { limit: MAX_ASKED_BYTES, pause: self.app.limits.read_timeout };
        // Held until it is known what the answer looks like: many may wait that long.
        let (ticket, _reservation): (Ticket, _) =
            Incoming::new(headers, body, caps, self.app.bodies.enter())?.only().await?;
        let (database, keep) = (target::database(headers)?, layout::keeps_dictionaries(headers)?);
        let asked = match messages::fetched(&ticket.ticket, database)? {
            Fetched::Query(asked) => asked,
            Fetched::Command(Command::CommandPreparedStatementQuery(asked)) => {
                self.statements.get(&asked.prepared_statement_handle)?.query()?
            }
            Fetched::Command(command) => {
                return Ok(known::messages(known::answer(&self.app, caller, command).await?));
            }
        };
        if !Statement::parse(&asked.sql)?.kind().is_change() {
            return query::answer(&self.app, caller, asked, keep).await;
        }
        let values = asked.values.into_iter().collect();
        let asked = Asked { database: asked.database, sql: asked.sql, values };
        let count = changes::run(&self.app, caller, asked, headers).await?;
        Ok(known::messages(changes::answer(count)?))
    }
}

type Answers<T> = BoxStream<'static, Result<T, Status>>;

#[tonic::async_trait]
impl FlightService for Flight {
    type HandshakeStream = Answers<HandshakeResponse>;
    type ListFlightsStream = Answers<FlightInfo>;
    type DoGetStream = Messages;
    type DoPutStream = Answers<PutResult>;
    type DoExchangeStream = Answers<FlightData>;
    type DoActionStream = Answers<ActionResult>;
    type ListActionsStream = Answers<ActionType>;

    /// Answers the token that the client was let in with, also where it had sent it as a password. Where nobody has to log in,
    /// clients that were given a password ask all the same.
    async fn handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        let is_closed = self.app.auth.path().is_some();
        let token = auth::bearer(request.metadata().as_ref()).filter(|_| is_closed);
        let mut response = Response::new(stream::iter([Ok(HandshakeResponse::default())]).boxed());
        // Clients send it back with each call, and some fail without one.
        let anyone = || MetadataValue::from_static("Bearer anyone");
        response
            .metadata_mut()
            .insert("authorization", token.and_then(|text| text.parse().ok()).unwrap_or_else(anyone));
        Ok(response)
    }

    async fn get_flight_info(&self, request: Request<FlightDescriptor>) -> Result<Response<FlightInfo>, Status> {
        Ok(Response::new(self.planned(request).await?))
    }

    async fn get_schema(&self, request: Request<FlightDescriptor>) -> Result<Response<SchemaResult>, Status> {
        Ok(Response::new(SchemaResult { schema: self.planned(request).await?.schema }))
    }

    /// Never called: its route goes to [`Flight::get`].
    async fn do_get(&self, _: Request<Ticket>) -> Result<Response<Self::DoGetStream>, Status> {
        Err(Failure::bug().into())
    }

    /// Never called: its route goes to [`Flight::put`].
    async fn do_put(&self, _: Request<Streaming<FlightData>>) -> Result<Response<Self::DoPutStream>, Status> {
        Err(Failure::bug().into())
    }

    async fn do_action(&self, request: Request<Action>) -> Result<Response<Self::DoActionStream>, Status> {
        let (headers, extensions, action) = request.into_parts();
        let client = actions::ActionClient {
            app: &self.app,
            statements: &self.statements,
            caller: &self.caller(&extensions)?,
            database: target::database(headers.as_ref())?,
            keep_dictionaries: layout::keeps_dictionaries(headers.as_ref())?,
        };
        let answer = actions::run(client, action).await?;
        Ok(Response::new(stream::iter(answer.map(|body| Ok(ActionResult { body }))).boxed()))
    }

    async fn list_actions(&self, _: Request<Empty>) -> Result<Response<Self::ListActionsStream>, Status> {
        Ok(Response::new(stream::iter(actions::all().map(Ok)).boxed()))
    }

    async fn list_flights(&self, _: Request<Criteria>) -> Result<Response<Self::ListFlightsStream>, Status> {
        Err(unsupported("tables are listed by the commands of Flight SQL").into())
    }

    async fn poll_flight_info(&self, _: Request<FlightDescriptor>) -> Result<Response<PollInfo>, Status> {
        Err(unsupported("queries are not polled; GetFlightInfo answers at once").into())
    }

    async fn do_exchange(&self, _: Request<Streaming<FlightData>>) -> Result<Response<Self::DoExchangeStream>, Status> {
        Err(unsupported("DoExchange is not supported; DoGet and DoPut are").into())
    }
}

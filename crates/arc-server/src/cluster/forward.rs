//! Handing a client's request on to the node that it is for, and its answer back, as they are.
//!
//! A request is sent once. Where it is not known what became of it, the client is told so, and decides: with an idempotency
//! key, sending it again is safe. Never reads a body but that of a statement, which may have to be sent after all.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::Request,
    response::{IntoResponse, Response},
};
use hyper::{
    HeaderMap, StatusCode, Uri,
    header::{self, HeaderName, HeaderValue},
};

use super::{
    Cluster,
    internal::hops,
    peers::PeerClient,
    places::{Destination, destination},
    report::{HOPS, NODE, STORE, TOKEN, VERSION},
};
use crate::{
    app::App,
    auth,
    body::{self, Caps, Held},
    config::Peer,
    errors::{Failure, NeedsOwner, chain},
    http::request_id::REQUEST_ID,
};

/// Headers that are of one connection, and not of the request.
const OF_CONNECTION: [HeaderName; 8] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::TE,
    header::TRAILER,
    header::UPGRADE,
    header::PROXY_AUTHORIZATION,
    header::PROXY_AUTHENTICATE,
    header::EXPECT,
];
/// The node that has answered.
const ANSWERED_BY: HeaderName = HeaderName::from_static("x-arc-node");
/// Nodes that a request may go through.
const MAX_HOPS: u32 = 2;
/// How long a node that does not say how it is may take for an answer.
const SILENCE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Returns the token of a request, wherever it has it: what is handed on has it in its own header.
pub(crate) fn text_of_token(request: &Request) -> Option<String> {
    auth::found(request.headers(), request.uri())
}

/// What goes along with a request that is handed on.
struct Onward<'a> {
    cluster: &'a Arc<Cluster>,
    token: Option<String>,
    id: &'a HeaderValue,
}

/// Answers a request that was let in: here, or where it is for.
pub(crate) async fn answer(
    app: &Arc<App>,
    cluster: &Arc<Cluster>,
    (token, id): (Option<String>, &HeaderValue),
    request: Request,
    here: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    let hops = hops(request.headers());
    let onward = Onward { cluster, token, id };
    match destination(cluster.role, hops > 0, request.method(), request.uri().path()) {
        Destination::Here => here(request).await,
        Destination::Owner => match onward.owner(hops).await {
            Ok(owner) => onward.send(&owner, request).await,
            Err(failure) => failure.into_response(),
        },
        Destination::Reader => match onward.reader() {
            Some(reader) => onward.send(&reader, request).await,
            // Nobody else answers: better here than not at all.
            None => here(request).await,
        },
        Destination::HereIfItReads => match held(app, request).await {
            Ok((request, held)) => onward.here_if_it_reads((request, held), here, hops).await,
            Err(failure) => failure.into_response(),
        },
    }
}

/// Reads the body of a statement.
async fn held(app: &Arc<App>, request: Request) -> Result<(hyper::http::request::Parts, Held), Failure> {
    let (parts, body) = request.into_parts();
    let mut reservation = app.bodies.enter();
    let caps = Caps { limit: crate::admin::MAX_REQUEST_BYTES, pause: app.limits.read_timeout };
    let bytes = body::read_within(body, &parts.headers, caps, &mut reservation).await?;
    Ok((parts, Held { bytes, reservation }))
}

impl Onward<'_> {
    async fn here_if_it_reads(
        &self,
        (parts, held): (hyper::http::request::Parts, Held),
        here: impl AsyncFnOnce(Request) -> Response,
        hops: u32,
    ) -> Response {
        let again = (parts.method.clone(), parts.uri.clone(), parts.headers.clone());
        let answer = here(Request::from_parts(parts, Body::from(held.bytes.clone()))).await;
        if answer.extensions().get::<NeedsOwner>().is_none() {
            return answer;
        }
        let (method, uri, headers) = again;
        let mut request = Request::new(Body::from(held.bytes));
        (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (method, uri, headers);
        match self.owner(hops).await {
            Ok(owner) => self.send(&owner, request).await,
            Err(failure) => failure.into_response(),
        }
    }

    /// Returns the node that takes writes.
    async fn owner(&self, hops: u32) -> Result<Peer, Failure> {
        let Cluster { members, name, .. } = self.cluster.as_ref();
        if hops >= MAX_HOPS {
            let text =
                format!("node {name} does not take writes, and a node that it could hand them on to has sent this one");
            return Err(unavailable(text));
        }
        if let Some(owner) = members.owner(None) {
            return Ok(owner);
        }
        self.cluster.ask_all().await;
        members.owner(None).ok_or_else(|| {
            unavailable(format!("no node takes writes and changes now, nothing was done: {}", members.no_owner()))
        })
    }

    /// Returns a node that answers queries, another one each time.
    fn reader(&self) -> Option<Peer> {
        let mut readers = self.cluster.members.that_answer_queries();
        let turn = usize::try_from(self.cluster.counters.forwarded.get()).unwrap_or(0);
        if readers.is_empty() { None } else { Some(readers.swap_remove(turn % readers.len())) }
    }

    /// Sends a request, and returns what it is answered.
    async fn send(&self, to: &Peer, request: Request) -> Response {
        let Cluster { counters, onward, name, .. } = self.cluster.as_ref();
        counters.forwarded.add(1);
        let is_safe = request.method().is_safe();
        let outgoing = match self.outgoing(to, request) {
            Ok(outgoing) => outgoing,
            Err(failure) => return failure.into_response(),
        };
        let answer = tokio::select! {
            answer = sent(onward, outgoing) => answer,
            () = self.silence(to) => Err((format!("it has not answered anything for {} s", SILENCE.as_secs()), false)),
        };
        match answer {
            Ok(mut response) => {
                OF_CONNECTION.iter().for_each(|name| drop(response.headers_mut().remove(name)));
                let answered_by = HeaderValue::from_str(&to.name).unwrap_or_else(|_| HeaderValue::from_static("?"));
                response.headers_mut().entry(ANSWERED_BY).or_insert(answered_by);
                response
            }
            Err((reason, is_unsent)) => {
                counters.forward_failures.add(1);
                tracing::warn!(node = to.name, reason, "a request was handed on and not answered");
                let Peer { name: to, url } = to;
                if is_unsent || is_safe {
                    return unavailable(format!("node {to} at {url} cannot be reached by node {name}: {reason}"))
                        .into_response();
                }
                let text = format!(
                    "node {to} at {url} did not answer node {name}, which handed this request on: {reason}. It may have been \
                     done, as a whole, or not; with the same Idempotency-Key it can be sent again safely"
                );
                Failure::new(StatusCode::BAD_GATEWAY, text).into_response()
            }
        }
    }

    fn outgoing(&self, to: &Peer, request: Request) -> Result<Request, Failure> {
        let (mut parts, body) = request.into_parts();
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let uri: Uri = format!("{}{path}", to.url).parse().map_err(|_| Failure::bug())?;
        let hops = hops(&parts.headers);
        let headers: &mut HeaderMap = &mut parts.headers;
        OF_CONNECTION.iter().for_each(|name| drop(headers.remove(name)));
        [TOKEN, VERSION, STORE, NODE, header::HOST].iter().for_each(|name| drop(headers.remove(name)));
        headers.insert(HOPS, (hops + 1).into());
        headers.insert(REQUEST_ID, self.id.clone());
        if let Some(token) = &self.token {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| Failure::bug())?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        let mut request = Request::new(body);
        (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (parts.method, uri, parts.headers);
        Ok(request)
    }

    /// Returns once a node has not said how it is for too long: it may be stopped, or cut off.
    async fn silence(&self, of: &Peer) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if self.cluster.members.silent_for(&of.name).is_some_and(|time| time > SILENCE) {
                return;
            }
        }
    }
}

/// Sends a request; where that fails, also returns whether nothing of it was sent.
async fn sent(client: &PeerClient, request: Request) -> Result<Response, (String, bool)> {
    match client.send(request).await {
        Ok(response) => Ok(response.map(Body::new)),
        Err(error) => Err((chain(&error), error.is_connect())),
    }
}

fn unavailable(text: String) -> Failure {
    Failure::busy(text, Duration::from_secs(1))
}

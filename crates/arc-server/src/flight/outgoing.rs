//! Answers on their way to a client: messages as the frames of a body, each with what it carries where that lies.
//!
//! tonic puts a message together before it sends it: a copy of all that is sent. Owns the framing of gRPC in the other
//! direction than `incoming`, and the end of a call. Never looks into what a message carries.

use std::convert::Infallible;

use arrow_flight::FlightData;
use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use http_body_util::StreamBody;
use hyper::{HeaderMap, body::Frame, header};
use prost::Message;
use tonic::{Code, Status};

use crate::errors::Failure;

/// Key of the field with the body: number 1000, of bytes.
const BODY_KEY: [u8; 2] = [0xc2, 0x3e];

/// Answers a call with one message.
pub(super) fn one(message: &impl Message) -> Response {
    whole([message.encode_to_vec()])
}

/// Answers a call with a few messages.
pub(super) fn several(messages: impl IntoIterator<Item = impl Message>) -> Response {
    whole(messages.into_iter().map(|message| message.encode_to_vec()))
}

fn whole(messages: impl IntoIterator<Item = Vec<u8>>) -> Response {
    let messages = messages.into_iter().map(|message| Frame::data(framed(message, 0)));
    let end = Frame::trailers(trailers(&Status::new(Code::Ok, "")));
    respond(stream::iter(messages.chain([end]).collect::<Vec<_>>()))
}

/// Answers a call with a stream of messages, the last of which may be why there are no more.
pub(super) fn all(messages: impl Stream<Item = Result<FlightData, Status>> + Send + Unpin + 'static) -> Response {
    let sending = SendingMessages { messages, body: Bytes::new(), is_over: false };
    respond(stream::unfold(sending, |mut sending| async move { Some((sending.next().await?, sending)) }))
}

/// Answers a call that has failed before there was any message.
pub(crate) fn failed(failure: Failure) -> Response {
    Status::from(failure).into_http()
}

fn respond(frames: impl Stream<Item = Frame<Bytes>> + Send + 'static) -> Response {
    let body = StreamBody::new(frames.map(Ok::<_, Infallible>));
    ([(header::CONTENT_TYPE, "application/grpc")], Body::new(body)).into_response()
}

/// An answer under way; dropping it drops its messages.
struct SendingMessages<S> {
    messages: S,
    /// Of the message whose head was sent last.
    body: Bytes,
    is_over: bool,
}

impl<S: Stream<Item = Result<FlightData, Status>> + Unpin> SendingMessages<S> {
    async fn next(&mut self) -> Option<Frame<Bytes>> {
        if !self.body.is_empty() {
            return Some(Frame::data(std::mem::take(&mut self.body)));
        }
        if self.is_over {
            return None;
        }
        match self.messages.next().await {
            Some(Ok(mut message)) => {
                self.body = std::mem::take(&mut message.data_body);
                let mut head = message.encode_to_vec();
                if !self.body.is_empty() {
                    head.extend(BODY_KEY);
                    prost::encoding::encode_varint(self.body.len() as u64, &mut head);
                }
                Some(Frame::data(framed(head, self.body.len())))
            }
            end => {
                self.is_over = true;
                let status = end.and_then(Result::err).unwrap_or_else(|| Status::new(Code::Ok, ""));
                Some(Frame::trailers(trailers(&status)))
            }
        }
    }
}

/// Puts what gRPC wants in front of a message of which `more` bytes are to follow.
fn framed(message: Vec<u8>, more: usize) -> Bytes {
    // Nothing that is sent is near 4 GiB.
    let length = u32::try_from(message.len() + more).unwrap_or(u32::MAX);
    [&[0], &length.to_be_bytes()[..], &message].concat().into()
}

/// Says how a call has ended.
fn trailers(status: &Status) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    // What cannot be a header is the status that says so.
    if let Err(other) = status.add_header(&mut trailers) {
        tracing::error!(error = %other, "a status cannot be sent");
    }
    trailers
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use http_body_util::BodyExt;

    use super::*;

    fn collected(response: Response) -> (Vec<u8>, HeaderMap) {
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/grpc");
        let collected = block_on(response.into_body().collect()).unwrap();
        let trailers = collected.trailers().unwrap().clone();
        (collected.to_bytes().to_vec(), trailers)
    }

    #[test]
    fn messages_are_encoded_as_the_protocol_wants_and_an_error_ends_them() {
        let full = FlightData::new().with_data_header(&b"head"[..]).with_app_metadata(&b"meta"[..]);
        let full = full.with_data_body(vec![7; 100_000]);
        let sent = [FlightData::new().with_data_header(&b"head"[..]), full, FlightData::new()];
        let encoded = sent.iter().flat_map(|message| {
            let message = message.encode_to_vec();
            [&[0], &u32::try_from(message.len()).unwrap().to_be_bytes()[..], &message].concat()
        });
        let expected: Vec<u8> = encoded.collect();
        for (end, code) in [(None, "0"), (Some(Status::new(Code::Cancelled, "no more")), "1")] {
            let messages: Vec<_> = sent.iter().cloned().map(Ok).chain(end.map(Err)).collect();
            let (bytes, trailers) = collected(all(stream::iter(messages)));
            assert!(bytes == expected);
            assert_eq!(trailers["grpc-status"], code);
            assert_eq!(trailers.get("grpc-message").is_some(), code != "0");
        }
        let (bytes, trailers) = collected(one(&FlightData::new().with_data_header(&b"x"[..])));
        assert_eq!(
            (bytes.as_slice(), &trailers["grpc-status"]),
            (&[0, 0, 0, 0, 3, 0x12, 1, b'x'][..], &"0".parse().unwrap())
        );
    }
}

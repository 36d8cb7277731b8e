//! Messages of a client as they arrive, taken from the frames of HTTP/2 without a buffer of their own in between.
//!
//! tonic gathers a message before it decodes it: a copy of all that is sent. Here the head of a message is read first, and
//! whoever knows where its body should lie has it put there. Owns the framing of gRPC and the fields of `FlightData`, as
//! <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md> and Arrow's `Flight.proto` have them. Never looks into
//! what a message carries. What is kept of it has its place among the bodies of all requests.

use std::time::Duration;

use arrow_flight::{FlightData, FlightDescriptor};
use axum::body::Body;
use bytes::{Buf, Bytes};
use http_body_util::BodyExt;
use hyper::HeaderMap;
use prost::Message as _;

use super::{MAX_ASKED_BYTES, status::unsupported};
use crate::{
    admission::Reservation,
    body::{Caps, Pace},
    errors::Failure,
};

/// Header that names a compression of messages.
const ENCODING: &str = "grpc-encoding";
/// Most bytes of messages that may wait for a client which sends further ones slowly: two parts. More are dictionaries.
const PATIENT_BYTES: usize = 16 << 20;
/// Most that is read of a stream that is refused.
const PASSED_BYTES: usize = 16 << 20;
const PASSED_TIME: Duration = Duration::from_secs(1);
/// What is reserved for a body before any of it has come.
const MAX_RESERVE: usize = 1 << 20;
/// Numbers of the fields of `FlightData` that are read.
const DESCRIPTOR: u64 = 1;
const HEADER: u64 = 2;
const BODY: u64 = 1_000;

/// One message, of which the body may still be on its way.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) descriptor: Option<FlightDescriptor>,
    /// What the body is, in Arrow's terms.
    pub(super) header: Bytes,
    body: IncomingPart,
}

#[derive(Debug)]
enum IncomingPart {
    /// So many bytes come next.
    Coming(usize),
    /// Came before the header, as no writer is known to send it.
    Here(Bytes),
}

impl Message {
    pub(super) fn body_bytes(&self) -> usize {
        match &self.body {
            IncomingPart::Coming(bytes) => *bytes,
            IncomingPart::Here(body) => body.len(),
        }
    }
}

/// The messages of a client, which may stop coming.
#[derive(Debug)]
pub(super) struct Incoming {
    body: Body,
    /// The first message, until it is taken: it has been read for its descriptor.
    first: Option<Message>,
    /// What is left of the frame that came last.
    piece: Bytes,
    /// Bytes of the current message that were not taken yet.
    left: usize,
    /// Most bytes of one message.
    limit: usize,
    pace: Pace,
    reservation: Reservation,
    /// Bytes that were taken of the current message, and those that are kept of earlier ones.
    taken: usize,
    kept: usize,
}

impl Incoming {
    /// Takes over a request; each of its messages is within `caps`, and is in `reservation`.
    pub(super) fn new(headers: &HeaderMap, body: Body, caps: Caps, reservation: Reservation) -> Result<Self, Failure> {
        let Caps { limit, pause } = caps;
        let pace = Pace::new(pause);
        match headers.get(ENCODING) {
            Some(encoding) if encoding != "identity" => Err(unsupported("compressed messages are not supported")),
            _ => Ok(Self {
                body,
                first: None,
                piece: Bytes::new(),
                left: 0,
                limit,
                pace,
                reservation,
                taken: 0,
                kept: 0,
            }),
        }
    }

    /// Notes how many bytes of the messages before are kept from now on.
    pub(super) fn keep(&mut self, bytes: usize) {
        (self.kept, self.taken) = (bytes, 0);
        self.reservation.shrink_to(bytes);
    }

    /// Finds room for so many bytes more of the current message.
    async fn hold(&mut self, bytes: usize) -> Result<(), Failure> {
        self.taken += bytes;
        self.reservation.grow_to(self.kept + self.taken).await
    }

    /// Reads the first message, which says what all of them are for.
    pub(super) async fn descriptor(&mut self) -> Result<FlightDescriptor, Failure> {
        let first = self.next().await?.ok_or_else(|| Failure::bad_request("the stream has no messages"))?;
        let descriptor = self.first.insert(first).descriptor.take();
        descriptor.ok_or_else(|| Failure::bad_request("the first message of the stream has no descriptor"))
    }

    /// Returns the one message of a call that has one, and its place.
    pub(super) async fn only<M: prost::Message + Default>(mut self) -> Result<(M, Reservation), Failure> {
        if !self.begin().await? {
            return Err(Failure::bad_request("the call has no message"));
        }
        if self.left > MAX_ASKED_BYTES {
            let text = format!("the message of the call has {} bytes; {MAX_ASKED_BYTES} are allowed", self.left);
            return Err(Failure::too_large(text));
        }
        let message = M::decode(self.take(self.left).await?).map_err(|error| invalid(&error))?;
        Ok((message, self.reservation))
    }

    /// Returns the next message, `None` behind the last one. What was not taken of the one before is passed over.
    pub(super) async fn next(&mut self) -> Result<Option<Message>, Failure> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        self.skip(self.left).await?;
        if !self.begin().await? {
            return Ok(None);
        }
        let (mut descriptor, mut header, mut body) = (None, None, None);
        while self.left > 0 {
            let key = self.varint().await?;
            let (field, bytes) = (key >> 3, self.field_bytes(key & 7).await?);
            match (field, key & 7) {
                (DESCRIPTOR, 2) if bytes > MAX_ASKED_BYTES => {
                    let text = format!("the descriptor has {bytes} bytes; {MAX_ASKED_BYTES} are allowed");
                    return Err(Failure::too_large(text));
                }
                (DESCRIPTOR, 2) => {
                    let bytes = self.take(bytes).await?;
                    descriptor = Some(FlightDescriptor::decode(bytes).map_err(|error| invalid(&error))?);
                }
                (HEADER, 2) => header = Some(self.take(bytes).await?),
                (BODY, 2) if header.is_some() => {
                    body = Some(IncomingPart::Coming(bytes));
                    break;
                }
                (BODY, 2) => body = Some(IncomingPart::Here(self.take(bytes).await?)),
                _ => self.skip(bytes).await?,
            }
        }
        let body = body.unwrap_or(IncomingPart::Coming(0));
        Ok(Some(Message { descriptor, header: header.unwrap_or_default(), body }))
    }

    /// Appends the body of the message that came last to `to`.
    pub(super) async fn body(&mut self, message: Message, to: &mut Vec<u8>) -> Result<(), Failure> {
        let bytes = match message.body {
            IncomingPart::Coming(bytes) => bytes,
            IncomingPart::Here(body) => {
                to.extend_from_slice(&body);
                return Ok(());
            }
        };
        let mut missing = bytes;
        while missing > 0 {
            let piece = self.some(missing).await?;
            missing -= piece.len();
            self.hold(piece.len()).await?;
            to.extend_from_slice(&piece);
        }
        // Later ones would be part of the same message, of which the last one counts.
        while self.left > 0 {
            let key = self.varint().await?;
            let bytes = self.field_bytes(key & 7).await?;
            if [HEADER, BODY].contains(&(key >> 3)) {
                return Err(invalid(&"it has two headers or bodies"));
            }
            self.skip(bytes).await?;
        }
        Ok(())
    }

    /// Reads what else comes of a stream that is refused, for a while: a client that is still sending it takes the end of the
    /// call for its own failure, and does not look at the answer.
    pub(super) async fn pass_over(&mut self) {
        let mut left = PASSED_BYTES;
        let rest = async {
            while let Some(Ok(frame)) = self.body.frame().await {
                left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
                if left == 0 {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(PASSED_TIME, rest).await;
    }

    /// Returns the message that came last as a whole.
    pub(super) async fn whole(&mut self, message: Message) -> Result<FlightData, Failure> {
        let (header, mut body) = (message.header.clone(), Vec::with_capacity(message.body_bytes().min(MAX_RESERVE)));
        self.body(message, &mut body).await?;
        Ok(FlightData::new().with_data_header(header).with_data_body(body))
    }

    /// Reads what stands before a message; `false` behind the last one.
    async fn begin(&mut self) -> Result<bool, Failure> {
        // Between two messages a client may think, as long as little waits for it.
        if self.kept <= PATIENT_BYTES {
            self.pace.begin();
        }
        if self.piece.is_empty() && !self.read().await? {
            return Ok(false);
        }
        self.left = 5;
        let mut prefix = self.take(5).await?;
        let (is_compressed, bytes) = (prefix.get_u8() != 0, prefix.get_u32() as usize);
        if is_compressed {
            return Err(invalid(&"it is compressed, but no header says how"));
        }
        if bytes > self.limit {
            let text = format!("a message of the stream has {bytes} bytes, more than {} (max_body_bytes)", self.limit);
            return Err(Failure::too_large(text));
        }
        self.left = bytes;
        Ok(true)
    }

    /// Returns how many bytes a field of a wire type has.
    async fn field_bytes(&mut self, wire_type: u64) -> Result<usize, Failure> {
        match wire_type {
            0 => self.varint().await.map(|_| 0),
            1 => Ok(8),
            2 => usize::try_from(self.varint().await?).map_err(|error| invalid(&error)),
            5 => Ok(4),
            other => Err(invalid(&format!("it has a field of the wire type {other}"))),
        }
    }

    async fn varint(&mut self) -> Result<u64, Failure> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.some(1).await?.get_u8();
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(invalid(&"a number in it has no end"))
    }

    async fn skip(&mut self, mut bytes: usize) -> Result<(), Failure> {
        while bytes > 0 {
            bytes -= self.some(bytes).await?.len();
        }
        Ok(())
    }

    /// Takes exactly `bytes` of the message, copied only if they came in several pieces.
    async fn take(&mut self, bytes: usize) -> Result<Bytes, Failure> {
        if bytes == 0 {
            return Ok(Bytes::new());
        }
        let first = self.some(bytes).await?;
        self.hold(first.len()).await?;
        if first.len() == bytes {
            return Ok(first);
        }
        // What is announced is within the message, which is within the limit; memory grows with what has come.
        let mut all = first.to_vec();
        while all.len() < bytes {
            let piece = self.some(bytes - all.len()).await?;
            self.hold(piece.len()).await?;
            all.extend_from_slice(&piece);
        }
        Ok(all.into())
    }

    /// Takes some of the next `most` bytes of the message, one at least.
    async fn some(&mut self, most: usize) -> Result<Bytes, Failure> {
        if most > self.left {
            return Err(invalid(&"a field reaches beyond its end"));
        }
        if self.piece.is_empty() && !self.read().await? {
            return Err(broken("it ended in the middle of a message"));
        }
        let piece = self.piece.split_to(most.min(self.piece.len()));
        self.left -= piece.len();
        Ok(piece)
    }

    /// Waits for a piece that has any bytes; `false` if none comes any more.
    async fn read(&mut self) -> Result<bool, Failure> {
        loop {
            match self.pace.wait("stream", self.body.frame()).await? {
                None => return Ok(false),
                Some(Err(error)) => return Err(broken(&crate::errors::chain(&error))),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => {
                        self.pace.came(data.len());
                        self.piece = data;
                        return Ok(true);
                    }
                    // Trailers and empty pieces say nothing.
                    _ => {}
                },
            }
        }
    }
}

fn invalid(reason: &dyn std::fmt::Display) -> Failure {
    Failure::bad_request(format!("a message of the stream is not valid: {reason}"))
}

fn broken(reason: &str) -> Failure {
    Failure::bad_request(format!("the stream broke: {reason}"))
}

#[cfg(test)]
mod tests {
    use futures::{executor::block_on, stream};
    use hyper::StatusCode;

    use super::*;
    use crate::admission::Budget;

    fn caps(limit: usize, pause: Duration) -> Caps {
        Caps { limit, pause }
    }

    fn reservation() -> Reservation {
        Budget::new(1 << 20, Duration::ZERO, "full").enter()
    }

    fn framed(message: &[u8]) -> Vec<u8> {
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        [&[0], &length[..], message].concat()
    }

    fn of_pieces(bytes: &[u8], piece: usize) -> Body {
        let pieces: Vec<_> = bytes.chunks(piece).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect();
        Body::from_stream(stream::iter(pieces))
    }

    fn incoming(bytes: &[u8], piece: usize) -> Incoming {
        let body = of_pieces(bytes, piece);
        Incoming::new(&HeaderMap::new(), body, caps(10_000, Duration::from_secs(5)), reservation()).unwrap()
    }

    fn read(bytes: &[u8], piece: usize) -> Result<Vec<FlightData>, String> {
        block_on(async {
            let (mut incoming, mut read) = (incoming(bytes, piece), Vec::new());
            while let Some(mut message) = incoming.next().await.map_err(|failure| failure.message)? {
                let descriptor = message.descriptor.take();
                let mut data = incoming.whole(message).await.map_err(|failure| failure.message)?;
                data.flight_descriptor = descriptor;
                read.push(data);
            }
            Ok(read)
        })
    }

    fn data(header: &[u8], body: &[u8], descriptor: Option<&str>) -> FlightData {
        FlightData {
            flight_descriptor: descriptor.map(|table| FlightDescriptor::new_path(vec![table.to_owned()])),
            ..FlightData::new().with_data_header(header.to_vec()).with_data_body(body.to_vec())
        }
    }

    #[test]
    fn messages_are_what_was_sent_however_they_are_cut() {
        let (header, body): (Vec<u8>, Vec<u8>) = ((0..40).collect(), (0..=255).cycle().take(700).collect());
        let sent = [
            data(&[], &[], Some("cpu")),
            data(&header, &[], None),
            data(&header, &body, Some("cpu")),
            data(&[], &body[..1], None),
            data(&header[..1], &body[..128], None),
        ];
        let bytes: Vec<u8> = sent.iter().flat_map(|message| framed(&message.encode_to_vec())).collect();
        for piece in 1..bytes.len() + 1 {
            assert_eq!(read(&bytes, piece).unwrap(), sent, "{piece}");
        }
    }

    #[test]
    fn no_change_of_a_byte_is_a_panic() {
        let good = framed(&data(b"head", b"the body", Some("cpu")).encode_to_vec());
        for at in 0..good.len() {
            for change in [0x01, 0x08, 0x40, 0x80, 0xff] {
                let mut changed = good.clone();
                changed[at] ^= change;
                let _ = read(&changed, 5);
            }
        }
    }

    #[test]
    fn fields_may_come_in_any_order_and_unknown_ones_are_passed_over() {
        let expected = data(b"head", b"the body", None);
        let (header, body) = (data(b"head", b"", None).encode_to_vec(), data(b"", b"the body", None).encode_to_vec());
        // A number, eight bytes, some bytes and four bytes, all of numbers that nobody has given away.
        let unknown =
            [&[0xf8, 0x01, 0x80, 0x01, 0xf9, 0x01][..], &[7; 8], &[0xfa, 0x01, 2, 7, 7, 0xfd, 0x01], &[7; 4]].concat();
        for parts in [[&header, &body, &unknown], [&unknown, &header, &body], [&body, &unknown, &header]] {
            let message = framed(&parts.map(|part| &part[..]).concat());
            assert_eq!(read(&message, 3).unwrap(), std::slice::from_ref(&expected));
        }
        let twice = framed(&[&header[..], &body, &body].concat());
        assert!(read(&twice, 7).unwrap_err().contains("two headers or bodies"));
    }

    #[test]
    fn what_is_no_stream_of_messages_is_refused() {
        let good = framed(&data(b"head", b"the body", None).encode_to_vec());
        for end in 1..good.len() {
            assert!(read(&good[..end], 100).unwrap_err().contains("in the middle of a message"), "{end}");
        }
        assert!(read(&framed(&[0; 10_001]), 100).unwrap_err().contains("max_body_bytes"));
        assert!(read(&framed(&[0x12, 100, 1, 2]), 100).unwrap_err().contains("beyond its end"));
        assert!(read(&framed(&[0x13]), 100).unwrap_err().contains("wire type 3"));
        assert!(read(&framed(&[0xff; 11]), 100).unwrap_err().contains("no end"));
        assert!(read(&[1, 0, 0, 0, 0], 100).unwrap_err().contains("compressed"));
        let gzip = HeaderMap::from_iter([(ENCODING.parse().unwrap(), "gzip".parse().unwrap())]);
        let refused = Incoming::new(&gzip, Body::empty(), caps(1, Duration::ZERO), reservation()).unwrap_err();
        assert_eq!(refused.status, StatusCode::NOT_IMPLEMENTED);
    }

    #[tokio::test]
    async fn a_client_that_pauses_for_too_long_is_told() {
        let body = Body::from_stream(stream::pending::<Result<Vec<u8>, std::io::Error>>());
        let mut incoming =
            Incoming::new(&HeaderMap::new(), body, caps(1, Duration::from_millis(1)), reservation()).unwrap();
        assert_eq!(incoming.next().await.unwrap_err().status, StatusCode::REQUEST_TIMEOUT);
    }

    #[tokio::test]
    async fn what_is_kept_of_messages_has_its_place_and_gives_it_back() {
        let budget = Budget::new(4 << 20, Duration::ZERO, "full");
        let message = framed(&data(b"head", &[7; 1 << 20], None).encode_to_vec());
        let bytes: Vec<u8> = message.repeat(6);
        let read = |is_kept: bool| {
            let (body, budget) = (of_pieces(&bytes, 10_000), &budget);
            // Another one has what may be beside all others.
            let mut alone = budget.enter();
            let caps = caps(2 << 20, Duration::from_secs(5));
            let mut incoming = Incoming::new(&HeaderMap::new(), body, caps, budget.enter()).unwrap();
            async move {
                alone.grow_to(100 << 20).await.unwrap();
                let mut kept = 0;
                while let Some(message) = incoming.next().await? {
                    kept += if is_kept { message.body_bytes() } else { 0 };
                    incoming.body(message, &mut Vec::new()).await?;
                    incoming.keep(kept);
                }
                Ok::<_, Failure>(())
            }
        };
        read(false).await.unwrap();
        assert_eq!(read(true).await.unwrap_err().message, "full");
        read(false).await.unwrap();
    }
}

//! The least of HTTP/1.1 that a client of one server needs, over a blocking socket.
//!
//! Knows status, length, chunks and three headers. No redirects, no TLS, no proxies: it must cost
//! little, so that what is measured is the server.

use std::{
    io::{self, IoSlice, Read, Write as _},
    net::TcpStream,
    time::Duration,
};

/// Longest wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Longest head of an answer in bytes.
const MAX_HEAD: usize = 64 * 1024;

/// Returns host and port of an `http://` URL; a path is not looked at.
///
/// # Errors
///
/// If it is no such URL.
pub fn authority(url: &str) -> io::Result<String> {
    let rest = url.strip_prefix("http://").ok_or_else(|| invalid(format!("{url:?} does not begin with http://")))?;
    let authority = rest.split('/').next().unwrap_or_default();
    match authority.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(authority.to_owned()),
        None if !authority.is_empty() => Ok(format!("{authority}:80")),
        _ => Err(invalid(format!("{url:?} has no host and port"))),
    }
}

/// An answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// `Retry-After` in seconds.
    pub retry_after: Option<u64>,
    /// Whether the server keeps the connection.
    pub keep_alive: bool,
    /// The body.
    pub body: Vec<u8>,
}

/// A connection to the server, one request at a time.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    reader: ResponseReader<TcpStream>,
}

impl Connection {
    /// Connects to `authority`.
    ///
    /// # Errors
    ///
    /// If there is no server.
    pub fn open(authority: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(authority)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let reader = ResponseReader::new(stream.try_clone()?);
        Ok(Self { stream, reader })
    }

    /// Sends a request and reads the answer. `head` ends with an empty line.
    ///
    /// # Errors
    ///
    /// If the connection breaks: what the server did with the request is then unknown.
    pub fn exchange(&mut self, head: &[u8], body: &[u8]) -> io::Result<Response> {
        // A server that refuses may answer and close before it has read the body; its answer
        // counts.
        let sent = self.send(head, body);
        match (self.reader.read(), sent) {
            (Ok(response), Ok(())) => Ok(response),
            (Ok(response), Err(_)) => Ok(Response { keep_alive: false, ..response }),
            (Err(_), Err(error)) | (Err(error), Ok(())) => Err(error),
        }
    }

    /// Head and body in one system call, mostly, and in one packet where they are small.
    fn send(&mut self, head: &[u8], body: &[u8]) -> io::Result<()> {
        let sent = self.stream.write_vectored(&[IoSlice::new(head), IoSlice::new(body)])?;
        self.stream.write_all(head.get(sent..).unwrap_or_default())?;
        self.stream.write_all(body.get(sent.saturating_sub(head.len())..).unwrap_or_default())
    }
}

/// Reads answers off a stream of bytes.
#[derive(Debug)]
pub struct ResponseReader<R> {
    stream: R,
    /// What was read and not yet used.
    buffer: Vec<u8>,
}

impl<R: Read> ResponseReader<R> {
    /// Reads from `stream`.
    pub fn new(stream: R) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    /// Reads one answer, its body included.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::UnexpectedEof`] if the stream ends before the answer does,
    /// [`io::ErrorKind::InvalidData`] if it is not HTTP.
    pub fn read(&mut self) -> io::Result<Response> {
        loop {
            let head = self.head()?;
            let mut response = Response { status: head.status, keep_alive: head.keep_alive, ..Response::default() };
            response.retry_after = head.retry_after;
            match head.status {
                // Said before the answer proper.
                100..=199 => continue,
                204 | 304 => {}
                _ if head.chunked => response.body = self.chunks()?,
                _ => response.body = self.take(head.length)?,
            }
            return Ok(response);
        }
    }

    fn head(&mut self) -> io::Result<Head> {
        let mut searched = 0_usize;
        loop {
            let from = searched.saturating_sub(3);
            let found = self.buffer.get(from..).and_then(|new| new.windows(4).position(|four| four == b"\r\n\r\n"));
            if let Some(at) = found {
                let head = self.take(from + at + 4)?;
                return Head::parse(&head).ok_or_else(|| invalid("the answer is not HTTP/1.1".to_owned()));
            }
            searched = self.buffer.len();
            if searched > MAX_HEAD {
                return Err(invalid("the head of the answer does not end".to_owned()));
            }
            self.fill()?;
        }
    }

    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(|_| invalid(format!("{size:?} is no chunk size")))?;
            if size == 0 {
                // Trailers, then an empty line.
                while !self.line()?.is_empty() {}
                return Ok(body);
            }
            body.extend_from_slice(&self.take(size)?);
            self.line()?;
        }
    }

    fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(at) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.take(at + 1)?;
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            self.fill()?;
        }
    }

    fn take(&mut self, bytes: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < bytes {
            self.fill()?;
        }
        let rest = self.buffer.split_off(bytes);
        Ok(std::mem::replace(&mut self.buffer, rest))
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut piece = [0; 16 * 1024];
        match self.stream.read(&mut piece)? {
            0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")),
            read => {
                self.buffer.extend_from_slice(piece.get(..read).unwrap_or_default());
                Ok(())
            }
        }
    }
}

/// The head of an answer, as far as it matters.
#[derive(Debug)]
struct Head {
    status: u16,
    length: usize,
    chunked: bool,
    keep_alive: bool,
    retry_after: Option<u64>,
}

impl Head {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut lines = text.split("\r\n");
        let status = lines.next()?.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
        let mut head = Self { status, length: 0, chunked: false, keep_alive: true, retry_after: None };
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => head.length = value.parse().ok()?,
                "transfer-encoding" => head.chunked = value.eq_ignore_ascii_case("chunked"),
                "connection" => head.keep_alive = !value.eq_ignore_ascii_case("close"),
                "retry-after" => head.retry_after = value.parse().ok(),
                _ => {}
            }
        }
        Some(head)
    }
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives its bytes one by one, so that every split of an answer is tried.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
            out[0] = *first;
            self.0 = rest;
            Ok(1)
        }
    }

    fn answers(bytes: &[u8]) -> Vec<io::Result<Response>> {
        let mut at_once = ResponseReader::new(bytes);
        let mut slow = ResponseReader::new(Slow(bytes));
        let mut out = Vec::new();
        loop {
            let (one, other) = (at_once.read(), slow.read());
            assert_eq!(one.as_ref().ok(), other.as_ref().ok());
            let done = one.is_err();
            out.push(one);
            if done {
                return out;
            }
        }
    }

    #[test]
    fn answers_follow_each_other_on_one_connection() {
        let bytes = b"HTTP/1.1 204 No Content\r\nDate: x\r\n\r\n\
            HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 400 Bad Request\r\nContent-Length: 5\r\n\r\nwrong\
            HTTP/1.1 503 Service Unavailable\r\nretry-after: 2\r\nCONTENT-LENGTH: 0\r\nconnection: close\r\n\r\n\
            HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nwiki\r\n5;x=y\r\npedia\r\n0\r\nTrailer: t\r\n\r\n";
        let got: Vec<_> = answers(bytes).into_iter().filter_map(Result::ok).collect();
        let want = [
            Response { status: 204, keep_alive: true, ..Response::default() },
            Response { status: 400, keep_alive: true, body: b"wrong".to_vec(), ..Response::default() },
            Response { status: 503, retry_after: Some(2), ..Response::default() },
            Response { status: 200, keep_alive: true, body: b"wikipedia".to_vec(), ..Response::default() },
        ];
        assert_eq!(got, want);
    }

    #[test]
    fn what_is_cut_or_no_http_is_an_error() {
        let cases: [(&[u8], io::ErrorKind); 6] = [
            (b"", io::ErrorKind::UnexpectedEof),
            (b"HTTP/1.1 200 OK\r\nContent-Le", io::ErrorKind::UnexpectedEof),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwro", io::ErrorKind::UnexpectedEof),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", io::ErrorKind::InvalidData),
            (b"SSH-2.0-x\r\n\r\n", io::ErrorKind::InvalidData),
            (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", io::ErrorKind::InvalidData),
        ];
        for (bytes, want) in cases {
            assert_eq!(answers(bytes).pop().unwrap().unwrap_err().kind(), want, "{:?}", String::from_utf8_lossy(bytes));
        }
        let endless = vec![b'x'; MAX_HEAD * 2];
        assert_eq!(ResponseReader::new(endless.as_slice()).read().unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn urls() {
        for (url, want) in [
            ("http://127.0.0.1:8000", Some("127.0.0.1:8000")),
            ("http://[::1]:8000/", Some("[::1]:8000")),
            ("http://localhost/path", Some("localhost:80")),
            ("https://localhost", None),
            ("http://", None),
            ("http://:80", None),
            ("http://a:b", None),
        ] {
            assert_eq!(authority(url).ok().as_deref(), want, "{url}");
        }
    }
}

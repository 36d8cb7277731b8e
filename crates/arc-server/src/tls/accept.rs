//! The beginning of an encrypted connection.

use std::{sync::Arc, time::Duration};

use tokio::{io::AsyncWriteExt, net::TcpStream, time::timeout};
use tokio_rustls::TlsAcceptor;

use super::{Stream, Tls};

/// How long a client may take for the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How every handshake begins: the type of its record.
const HANDSHAKE: u8 = 22;
/// What those are told who do not encrypt.
const PLAIN: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: 69\r\nconnection: close\r\n\r\n\
    {\"error\":\"this address speaks TLS: use https:// or grpc+tls:// here\"}";

/// Returns the connection with what is to be around it; `None` if its client does not go along.
pub(crate) async fn accept(tls: Option<&Arc<Tls>>, stream: TcpStream) -> Option<Stream> {
    let Some(tls) = tls else { return Some(Stream::Plain(stream)) };
    match timeout(HANDSHAKE_TIMEOUT, handshake(tls, stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(%error, "a handshake failed");
            None
        }
        Err(_) => {
            tracing::debug!("a handshake took too long");
            None
        }
    }
}

async fn handshake(tls: &Tls, mut stream: TcpStream) -> std::io::Result<Option<Stream>> {
    let mut first = [0];
    if stream.peek(&mut first).await? == 0 {
        return Ok(None);
    }
    if first != [HANDSHAKE] {
        stream.write_all(PLAIN).await?;
        stream.shutdown().await?;
        return Ok(None);
    }
    let stream = TlsAcceptor::from(tls.config()).accept(stream).await?;
    Ok(Some(Stream::Tls(Box::new(stream))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_as_long_as_it_says() {
        let text = std::str::from_utf8(PLAIN).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{}", body.len());
    }
}

//! TLS over real sockets: both versions of HTTP, certificates of clients, plain clients, and the commands.

use std::{path::Path, process::Command, sync::Arc};

use arc_server::{Config, Server};
use http_body_util::{BodyExt, Empty};
use hyper::{Request, client::conn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// Makes a certificate by the command.
fn make(folder: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arc-server"));
    let output = command.args(["cert", "--name", "arc.example", "--to"]).arg(folder).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

async fn serve(folder: &Path, client_ca: Option<&Path>) -> std::net::SocketAddr {
    let mut config = Config::default();
    config.no_auth = true;
    config.data_dir = folder.join("data");
    config.http = "127.0.0.1:0".parse().unwrap();
    (config.tls.cert, config.tls.key) = (Some(folder.join("cert.pem")), Some(folder.join("key.pem")));
    config.tls.client_ca = client_ca.map(Path::to_owned);
    let server = Server::start(&config).await.unwrap();
    assert!(server.is_encrypted());
    let address = server.address();
    tokio::spawn(server.run(std::future::pending()));
    address
}

/// Connects as a client that trusts the certificate in `folder`, and shows that of `own`.
async fn connect(
    address: std::net::SocketAddr,
    folder: &Path,
    own: Option<&Path>,
    protocol: &[u8],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(folder.join("cert.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let builder = builder.with_root_certificates(roots);
    let mut config = match own {
        None => builder.with_no_client_auth(),
        Some(own) => {
            let chain = vec![CertificateDer::from_pem_file(own.join("cert.pem")).unwrap()];
            builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(own.join("key.pem")).unwrap()).unwrap()
        }
    };
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("arc.example").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// Asks over HTTP/1.1 on a connection that is there; returns the status line.
async fn ask(stream: &mut TlsStream<TcpStream>) -> std::io::Result<String> {
    stream.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").await?;
    let mut answer = vec![0; 16 << 10];
    let count = stream.read(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer[..count]).lines().next().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn both_versions_of_http_are_encrypted_on_one_address() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    let address = serve(dir.path(), None).await;
    let mut stream = connect(address, dir.path(), None, b"http/1.1").await.unwrap();
    for _ in 0..3 {
        assert_eq!(ask(&mut stream).await.unwrap(), "HTTP/1.1 200 OK");
        // Long enough for the connection to come to rest.
        tokio::time::sleep(std::time::Duration::from_millis(150)).await;
    }
    let stream = connect(address, dir.path(), None, b"h2").await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut sender, connection) = conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get("https://localhost/health").body(Empty::<bytes::Bytes>::new()).unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(!response.into_body().collect().await.unwrap().to_bytes().is_empty());
}

#[tokio::test]
async fn a_client_that_does_not_encrypt_is_told_so() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    let address = serve(dir.path(), None).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("https://"), "{answer}");
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&[22, 3, 1, 0, 5, 1, 2, 3, 4, 5]).await.unwrap();
    let mut rest = Vec::new();
    // What is no handshake after all ends the connection, and nothing else.
    let _ = stream.read_to_end(&mut rest).await;
    let mut stream = connect(address, dir.path(), None, b"http/1.1").await.unwrap();
    assert_eq!(ask(&mut stream).await.unwrap(), "HTTP/1.1 200 OK");
}

#[tokio::test]
async fn clients_show_a_certificate_where_one_is_asked_for() {
    let (dir, own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for folder in [&dir, &own, &other] {
        make(folder.path());
    }
    let address = serve(dir.path(), Some(&own.path().join("cert.pem"))).await;
    for (shown, is_fine) in [(Some(own.path()), true), (Some(other.path()), false), (None, false)] {
        // With TLS 1.3 a client learns only when it reads that it was refused.
        let answer = match connect(address, dir.path(), shown, b"http/1.1").await {
            Ok(mut stream) => ask(&mut stream).await,
            Err(error) => Err(error),
        };
        let is_answered = answer.as_ref().is_ok_and(|line| line == "HTTP/1.1 200 OK");
        assert_eq!(is_answered, is_fine, "{shown:?}: {answer:?}");
    }
}

#[tokio::test]
async fn a_server_does_not_start_with_a_certificate_that_cannot_be_used() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    std::fs::write(dir.path().join("key.pem"), "nonsense").unwrap();
    let mut config = Config::default();
    config.data_dir = dir.path().join("data");
    config.http = "127.0.0.1:0".parse().unwrap();
    (config.tls.cert, config.tls.key) = (Some(dir.path().join("cert.pem")), Some(dir.path().join("key.pem")));
    let error = Server::start(&config).await.unwrap_err().to_string();
    assert!(error.contains("key.pem") && error.contains("private key"), "{error}");
    assert!(!dir.path().join("data").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_speak_tls_with_whom_they_trust() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    let address = serve(dir.path(), None).await;
    std::fs::write(dir.path().join("a.lp"), "m v=1 1\n").unwrap();
    let (url, ca) = (format!("https://{address}"), dir.path().join("cert.pem"));
    let folder = dir.path().to_owned();
    let import = move |flags: Vec<String>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_arc-server"));
        command.args(["import", "--url", &url]).args(flags).arg("a.lp").current_dir(&folder).output().unwrap()
    };
    let (trusted, not) = tokio::task::spawn_blocking(move || {
        (import(vec!["--ca-file".to_owned(), ca.to_str().unwrap().to_owned()]), import(Vec::new()))
    })
    .await
    .unwrap();
    assert!(trusted.status.success(), "{}", String::from_utf8_lossy(&trusted.stderr));
    assert!(!not.status.success(), "a certificate that nobody vouches for");
    let mut again = Command::new(env!("CARGO_BIN_EXE_arc-server"));
    let again = again.args(["cert", "--to"]).arg(dir.path()).output().unwrap();
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(!again.status.success() && said.contains("--force"), "{said}");
}

//! TLS: the certificate that is shown, who has to show one, and how both change without a restart.
//!
//! By rustls, with the provider passed in by hand: two of them in one program, of which none is the default, would end it at the
//! first handshake. Never looks at what is sent.

mod accept;
mod cert;
mod error;
mod files;
mod stream;
mod watch;

use std::sync::Arc;

use arc_edge::provider;
use arc_swap::ArcSwap;
use rustls::{ServerConfig, server::WebPkiClientVerifier};

pub(crate) use accept::accept;
pub(crate) use cert::{command, run};
pub use error::TlsError;
pub(crate) use stream::Stream;
pub(crate) use watch::watch;

use crate::config;

/// What connections are told to speak, the best first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// What connections are encrypted with.
#[derive(Debug)]
pub(crate) struct Tls {
    files: config::TlsFiles,
    current: ArcSwap<ServerConfig>,
}

impl Tls {
    /// Reads the files that the settings name; `None` where they name none.
    pub(crate) fn open(files: &config::TlsFiles) -> Result<Option<Arc<Self>>, TlsError> {
        if *files == config::TlsFiles::default() {
            return Ok(None);
        }
        let current = ArcSwap::from(read(files)?);
        Ok(Some(Arc::new(Self { files: files.clone(), current })))
    }

    /// Reads the files again; where anything is wrong with them, what was there before stays.
    pub(crate) fn reload(&self) -> Result<(), TlsError> {
        self.current.store(read(&self.files)?);
        Ok(())
    }

    /// Returns what a connection that begins now is encrypted with.
    fn config(&self) -> Arc<ServerConfig> {
        self.current.load_full()
    }
}

fn read(files: &config::TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
    let (Some(cert), Some(key)) = (&files.cert, &files.key) else { return Err(TlsError::Incomplete) };
    let (chain, private) = (files::certificates(cert)?, files::key(key)?);
    let builder = ServerConfig::builder_with_provider(provider());
    let builder = builder.with_safe_default_protocol_versions().map_err(TlsError::Protocol)?;
    let builder = match &files.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let roots = Arc::new(files::roots(path)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
            let unusable = |error: rustls::server::VerifierBuilderError| TlsError::Unusable {
                path: path.clone(),
                reason: error.to_string(),
            };
            builder.with_client_cert_verifier(verifier.map_err(unusable)?)
        }
    };
    let unusable = |error: rustls::Error| TlsError::Unusable { path: cert.clone(), reason: error.to_string() };
    let mut config = builder.with_single_cert(chain, private).map_err(unusable)?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    /// Writes a new certificate and its key.
    fn write(folder: &Path) -> config::TlsFiles {
        let (chain, key) = cert::generate(&["localhost".to_owned()], 1).unwrap();
        let mut files = config::TlsFiles::default();
        (files.cert, files.key) = (Some(folder.join("cert.pem")), Some(folder.join("key.pem")));
        fs::write(folder.join("cert.pem"), chain).unwrap();
        fs::write(folder.join("key.pem"), key).unwrap();
        files
    }

    #[test]
    fn a_certificate_that_cannot_be_used_leaves_the_old_one() {
        let dir = tempfile::tempdir().unwrap();
        let files = write(dir.path());
        let tls = Tls::open(&files).unwrap().unwrap();
        let first = tls.config();
        let good = fs::read(dir.path().join("cert.pem")).unwrap();
        let other = tempfile::tempdir().unwrap();
        write(other.path());
        let of_other = fs::read(other.path().join("cert.pem")).unwrap();
        for bad in [b"".as_slice(), b"nonsense", &good[..good.len() / 2], &of_other] {
            fs::write(dir.path().join("cert.pem"), bad).unwrap();
            let error = tls.reload().unwrap_err().to_string();
            assert!(error.contains("cert.pem"), "{error}");
            assert!(Arc::ptr_eq(&first, &tls.config()));
        }
        fs::remove_file(dir.path().join("key.pem")).unwrap();
        assert!(tls.reload().unwrap_err().to_string().contains("key.pem"));
        write(dir.path());
        tls.reload().unwrap();
        assert!(!Arc::ptr_eq(&first, &tls.config()));
    }

    #[test]
    fn half_of_the_files_is_an_error_and_none_is_no_tls() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Tls::open(&config::TlsFiles::default()).unwrap().is_none());
        let mut files = write(dir.path());
        files.client_ca = Some(dir.path().join("nowhere.pem"));
        assert!(matches!(Tls::open(&files), Err(TlsError::Io { .. })));
        (files.client_ca, files.key) = (None, None);
        assert!(matches!(Tls::open(&files), Err(TlsError::Incomplete)));
        let key = Some(dir.path().join("key.pem"));
        let key_alone = config::TlsFiles { key, ..config::TlsFiles::default() };
        assert!(matches!(Tls::open(&key_alone), Err(TlsError::Incomplete)));
    }
}

//! Certificates and keys, as files have them.

use std::path::Path;

use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject as _},
};

use super::TlsError;

/// Reads a certificate, and those that vouch for it.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let expected = "certificate";
    let read = CertificateDer::pem_file_iter(path).map_err(|error| wrong(path, expected, error))?;
    let chain: Vec<_> = read.collect::<Result<_, _>>().map_err(|error| wrong(path, expected, error))?;
    if chain.is_empty() {
        return Err(wrong(path, expected, pem::Error::NoItemsFound));
    }
    Ok(chain)
}

/// Reads a private key.
pub(super) fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| wrong(path, "private key", error))
}

/// Reads the certificates of those who vouch for others.
pub(super) fn roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        let unusable = |error: rustls::Error| TlsError::Unusable { path: path.into(), reason: error.to_string() };
        roots.add(certificate).map_err(unusable)?;
    }
    Ok(roots)
}

fn wrong(path: &Path, expected: &'static str, error: pem::Error) -> TlsError {
    match error {
        pem::Error::Io(source) => TlsError::Io { action: "read", path: path.into(), source },
        pem::Error::NoItemsFound => {
            TlsError::Pem { path: path.into(), expected, reason: "nothing of the kind is in it".to_owned() }
        }
        other => TlsError::Pem { path: path.into(), expected, reason: other.to_string() },
    }
}

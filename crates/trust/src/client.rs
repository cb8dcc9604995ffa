//! The TLS configuration of clients: root certificates, and TLS 1.2 or newer.

use std::sync::{Arc, OnceLock};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// Returns a configuration with the system's root certificates, which are read once.
pub fn by_system() -> Result<Arc<ClientConfig>, String> {
    static CONFIG: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    let made = || {
        let mut trusted = RootCertStore::empty();
        // A system certificate that cannot be parsed is skipped, as other programs do.
        trusted.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        trusting(trusted)
    };
    CONFIG.get_or_init(made).clone()
}

/// Returns a configuration with only the root certificates in a file. All of them must be valid, because a user chose
/// the file.
pub fn by_file(path: &str) -> Result<Arc<ClientConfig>, String> {
    let failed = |error| format!("could not read the certificates in {path}: {error}");
    let mut trusted = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(failed)? {
        trusted.add(certificate.map_err(failed)?).map_err(|error| format!("{path}: {error}"))?;
    }
    trusting(trusted)
}

fn trusting(trusted: RootCertStore) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?;
    Ok(Arc::new(config.with_root_certificates(trusted).with_no_client_auth()))
}

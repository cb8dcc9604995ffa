//! What a connection over TLS begins with: certificates, and nothing older than TLS 1.2.

use std::sync::{Arc, OnceLock};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// Returns what trusts whom the system trusts; its certificates are read once.
pub fn by_system() -> Result<Arc<ClientConfig>, String> {
    static CONFIG: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    let made = || {
        let mut trusted = RootCertStore::empty();
        // A certificate of the system that cannot be read is skipped, as every other program does.
        trusted.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        trusting(trusted)
    };
    CONFIG.get_or_init(made).clone()
}

/// Returns what trusts the certificates in a file, and nobody else. Each of them must be readable: somebody chose it.
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

//! The files of the page other than HTML: one style sheet, one script, the logo. They are embedded in the binary.
//! Each has the digest of its bytes in its path, so browsers cache it forever and never show an old version.

use std::sync::LazyLock;

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use ring::digest::{SHA256, digest};

use super::ask::PagePath;
use super::trouble::PageError;

const FOR_GOOD: &str = "public, max-age=31536000, immutable";
/// How many bytes of the digest are in a path.
const DIGEST_BYTES: usize = 6;

struct Asset {
    stem: &'static str,
    ending: &'static str,
    media: &'static str,
    bytes: &'static [u8],
}

const STYLE: Asset = Asset {
    stem: "page",
    ending: "css",
    media: "text/css; charset=utf-8",
    bytes: include_bytes!("assets/page.css"),
};
const SCRIPT: Asset = Asset {
    stem: "page",
    ending: "js",
    media: "text/javascript; charset=utf-8",
    bytes: include_bytes!("assets/page.js"),
};
const MARK: Asset =
    Asset { stem: "mark", ending: "svg", media: "image/svg+xml", bytes: include_bytes!("assets/mark.svg") };

static ADDRESSES: LazyLock<[(String, Asset); 3]> =
    LazyLock::new(|| [STYLE, SCRIPT, MARK].map(|asset| (asset.name(), asset)));

impl Asset {
    fn name(&self) -> String {
        let digest = digest(&SHA256, self.bytes);
        let hex: String =
            digest.as_ref().iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{hex}.{}", self.stem, self.ending)
    }
}

/// Returns the path of the style sheet.
pub(super) fn style() -> String {
    format!("/assets/{}", ADDRESSES[0].0)
}

/// Returns the path of the script.
pub(super) fn script() -> String {
    format!("/assets/{}", ADDRESSES[1].0)
}

/// Returns the path of the logo.
pub(super) fn mark() -> String {
    format!("/assets/{}", ADDRESSES[2].0)
}

/// Answers with an embedded file.
pub(super) async fn serve(PagePath(name): PagePath<String>) -> Result<Response, PageError> {
    let Some((_, asset)) = ADDRESSES.iter().find(|(own, _)| *own == name) else {
        return Err(PageError::unknown());
    };
    Ok(([(CONTENT_TYPE, asset.media), (CACHE_CONTROL, FOR_GOOD)], asset.bytes).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks if the page grows heavy. Compressed, the files are about a third of this size.
    #[test]
    fn script_and_style_together_stay_small() {
        let bytes = STYLE.bytes.len() + SCRIPT.bytes.len();
        assert!(bytes < 90_000, "{bytes} bytes");
    }

    /// Breaks if a path does not change with the content of its file.
    #[test]
    fn an_address_changes_with_the_bytes() {
        let one = Asset { bytes: b"a", ..STYLE };
        let other = Asset { bytes: b"b", ..STYLE };
        assert_ne!(one.name(), other.name());
        assert!(style().starts_with("/assets/page-") && style().ends_with(".css"));
    }
}

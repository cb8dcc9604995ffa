//! Parses sizes in the configuration: a number of bytes, or text such as `512MiB` or `4GiB`.

use serde::{Deserialize, Deserializer};

const MIB: u64 = 1024 * 1024;

/// A size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub(crate) u64);

impl Size {
    /// Returns the number of bytes.
    pub fn bytes(self) -> u64 {
        self.0
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawSize {
    Bytes(u64),
    Text(String),
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match RawSize::deserialize(deserializer) {
            Ok(RawSize::Bytes(bytes)) => Ok(Self(bytes)),
            Ok(RawSize::Text(text)) => parse(&text).map(Self).map_err(serde::de::Error::custom),
            Err(_) => {
                Err(serde::de::Error::custom("an amount is a number of bytes or text such as \"512MiB\""))
            }
        }
    }
}

fn parse(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit = match unit {
        "KiB" => Some(1024),
        "MiB" => Some(MIB),
        "GiB" => Some(1024 * MIB),
        _ => None,
    };
    let bytes = number.parse::<u64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
    bytes.ok_or_else(|| {
        format!("{text:?} is not an amount; write a whole number and KiB, MiB or GiB, such as 512MiB")
    })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn amounts_are_read_and_nonsense_is_named() {
        for (text, bytes) in [("1KiB", 1024), ("512MiB", 512 << 20), ("4GiB", 4 << 30)] {
            assert_eq!(parse(text), Ok(bytes));
        }
        for text in ["", "4", "4GB", "GiB", "-1MiB", "99999999999GiB"] {
            assert!(parse(text).expect_err(text).contains(&format!("{text:?}")));
        }
    }
}

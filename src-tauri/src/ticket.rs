//! Numbers used once, which bind what the webview sends to what it was shown.

use std::fmt;

use data_encoding::HEXLOWER;

/// 128 random bits. Compared as a whole; a webview that guesses has no better way than a dialog box.
#[derive(Clone, PartialEq, Eq)]
pub struct Nonce(String);

impl Nonce {
    /// A new one.
    pub fn mint() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(HEXLOWER.encode(&bytes)))
    }

    /// Whether this is what came back.
    pub fn is(&self, text: &str) -> bool {
        self.0 == text
    }

    /// For the webview.
    pub fn to_text(&self) -> String {
        self.0.clone()
    }
}

impl fmt::Debug for Nonce {
    /// Without the number: whoever has it can answer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nonce(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_alike_and_none_is_shown() {
        let (a, b) = (Nonce::mint().unwrap(), Nonce::mint().unwrap());
        assert!(a != b && a.is(&a.to_text()) && !a.is(&b.to_text()) && !a.is(""));
        assert_eq!(format!("{a:?}"), "Nonce(..)");
    }
}

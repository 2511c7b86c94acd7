//! Finds a secret in what a service answers, and puts stars in its place: as it is, and as it is usually encoded. The
//! length stays, because it may have been said already.

use std::collections::BTreeSet;

use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD, HEXLOWER, HEXUPPER};
use firedoor_model::broker::MIN_SECRET;
use memchr::memmem::Finder;

/// What is looked for.
#[derive(Clone)]
pub struct Mask {
    forms: Vec<Finder<'static>>,
}

impl Mask {
    /// For this secret.
    pub fn new(secret: &[u8]) -> Self {
        let mut forms =
            BTreeSet::from([secret.to_vec(), HEXLOWER.encode(secret).into(), HEXUPPER.encode(secret).into()]);
        for upper in [true, false] {
            forms.insert(percent(secret, upper));
        }
        if let Ok(Ok(json)) = std::str::from_utf8(secret).map(serde_json::to_string) {
            forms.insert(json.trim_matches('"').replace('/', "\\/").into_bytes());
            forms.insert(json.trim_matches('"').as_bytes().to_vec());
        }
        for before in 0..3 {
            for encoding in [&BASE64_NOPAD, &BASE64URL_NOPAD] {
                forms.insert(inner(encoding, before, secret));
            }
        }
        let forms = forms.into_iter().filter(|form| form.len() >= MIN_SECRET);
        Self { forms: forms.map(|form| Finder::new(&form).into_owned()).collect() }
    }

    /// Masks a whole text. True where there was something.
    pub fn whole(&self, text: &mut [u8]) -> bool {
        let found = self.places(text);
        stars(text, &found);
        !found.is_empty()
    }

    /// Where it stands, overlapping ones as well.
    fn places(&self, text: &[u8]) -> Vec<(usize, usize)> {
        let mut all = Vec::new();
        for form in &self.forms {
            let (mut from, length) = (0, form.needle().len());
            while let Some(at) = text.get(from..).and_then(|rest| form.find(rest)) {
                all.push((from + at, from + at + length));
                from += at + 1;
            }
        }
        all
    }

    /// How much of the end of a text may be the beginning of what is looked for.
    fn open_end(&self, text: &[u8]) -> usize {
        let begins = |form: &Finder<'_>| {
            let most = text.len().min(form.needle().len() - 1);
            (1..=most).rev().find(|length| text.ends_with(form.needle().get(..*length).unwrap_or_default()))
        };
        self.forms.iter().filter_map(begins).max().unwrap_or(0)
    }
}

fn stars(text: &mut [u8], places: &[(usize, usize)]) {
    for (from, to) in places {
        if let Some(part) = text.get_mut(*from..*to) {
            part.fill(b'*');
        }
    }
}

fn percent(secret: &[u8], upper: bool) -> Vec<u8> {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-._~".contains(b);
    let one = |b: &u8| match (plain(b), upper) {
        (true, _) => vec![*b],
        (false, true) => format!("%{b:02X}").into_bytes(),
        (false, false) => format!("%{b:02x}").into_bytes(),
    };
    secret.iter().flat_map(one).collect()
}

/// The characters that base 64 makes of the secret alone, wherever it begins: so many bytes `before` it, and any behind.
fn inner(encoding: &data_encoding::Encoding, before: usize, secret: &[u8]) -> Vec<u8> {
    let mut padded = vec![0; before];
    padded.extend_from_slice(secret);
    let (first, last) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
    encoding.encode(&padded).as_bytes().get(first..last).unwrap_or_default().to_vec()
}

/// A body that passes the mask piece by piece. What may be the beginning of the secret is held until more comes.
#[derive(Default)]
pub struct Passing {
    /// As it came, and as it goes on.
    held: Vec<u8>,
    shown: Vec<u8>,
}

impl Passing {
    /// What goes on of a further piece, and whether there was something in it.
    pub fn push(&mut self, mask: &Mask, piece: &[u8]) -> (Vec<u8>, bool) {
        self.held.extend_from_slice(piece);
        self.shown.extend_from_slice(piece);
        let found = mask.places(&self.held);
        stars(&mut self.shown, &found);
        let done = self.held.len() - mask.open_end(&self.held);
        self.held.drain(..done);
        (self.shown.drain(..done).collect(), !found.is_empty())
    }

    /// What was held at the end.
    pub fn rest(&mut self) -> Vec<u8> {
        self.held.clear();
        std::mem::take(&mut self.shown)
    }
}

#[cfg(test)]
mod tests {
    use data_encoding::{BASE64, BASE64URL};
    use proptest::prelude::*;

    use super::*;

    const SECRET: &str = "s3cr+t/\"värde~1";

    fn forms() -> Vec<String> {
        let mut all = vec![
            SECRET.to_owned(),
            serde_json::to_string(SECRET).unwrap(),
            "s3cr%2Bt%2F%22v%C3%A4rde~1".into(),
            "s3cr%2bt%2f%22v%c3%a4rde~1".into(),
            HEXLOWER.encode(SECRET.as_bytes()),
        ];
        for user in ["", "a:", "ab:", "abc:", "user:"] {
            for after in ["", "x", "xyz"] {
                all.push(BASE64.encode(format!("{user}{SECRET}{after}").as_bytes()));
                all.push(BASE64URL.encode(format!("{user}{SECRET}{after}").as_bytes()));
            }
        }
        all
    }

    #[test]
    fn every_usual_form_is_masked_and_the_length_stays() {
        let mask = Mask::new(SECRET.as_bytes());
        for form in forms() {
            let mut text = format!("before {form} after").into_bytes();
            let length = text.len();
            assert!(mask.whole(&mut text), "{form}");
            let masked = String::from_utf8_lossy(&text).into_owned();
            assert_eq!(text.len(), length);
            let stars = masked.matches('*').count();
            // What stands beside it in base 64 shares a letter with it.
            assert!(stars + 16 >= form.len(), "{masked}");
            assert!(masked.starts_with("before ") && masked.ends_with(" after"), "{masked}");
        }
        let mut plain = b"nothing of that kind, s3cr+t/ alone is none".to_vec();
        assert!(!mask.whole(&mut plain));
    }

    #[test]
    fn overlapping_secrets_leave_nothing() {
        let mask = Mask::new(b"abcabcabc");
        let mut text = b"abcabcabcabc!".to_vec();
        assert!(mask.whole(&mut text));
        assert_eq!(text, b"************!");
    }

    proptest! {
        #[test]
        fn pieces_are_masked_as_the_whole(cuts in prop::collection::vec(1usize..9, 0..60), form in 0usize..30, twice: bool) {
            let mask = Mask::new(SECRET.as_bytes());
            let all = forms();
            let form = &all[form % all.len()];
            let text = format!("s3cs3cr {form}{} end s3cr+", if twice { form.as_str() } else { "" }).into_bytes();
            let mut want = text.clone();
            mask.whole(&mut want);
            let (mut passing, mut got, mut rest) = (Passing::default(), Vec::new(), text.as_slice());
            let mut seen = false;
            for cut in cuts.into_iter().chain(std::iter::once(usize::MAX)) {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                let (out, found) = passing.push(&mask, piece);
                got.extend(out);
                seen |= found;
                rest = after;
            }
            got.extend(passing.rest());
            prop_assert!(seen);
            prop_assert_eq!(got, want);
        }

        #[test]
        fn what_holds_no_secret_passes_unchanged(text in "[a-m ]{0,200}") {
            let mask = Mask::new(SECRET.as_bytes());
            let mut passing = Passing::default();
            let (mut out, found) = passing.push(&mask, text.as_bytes());
            out.extend(passing.rest());
            prop_assert!(!found && out == text.as_bytes());
        }
    }
}

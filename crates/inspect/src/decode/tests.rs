use data_encoding::{BASE32_NOPAD, BASE64, BASE64URL_NOPAD, HEXLOWER, HEXUPPER};
use proptest::prelude::*;

use super::*;

/// Every decoded part of a text.
fn parts(text: &[u8]) -> Vec<(Vec<u8>, Encoding)> {
    let mut out = Vec::new();
    let mut budget = Budget::for_size(text.len());
    each(text, &mut budget, &mut |bytes, how, _, _| out.push((bytes.to_vec(), how)));
    assert!(!budget.exhausted);
    out
}

fn finds(text: &str, plain: &[u8], how: Encoding) -> bool {
    parts(text.as_bytes()).iter().any(|(b, h)| *h == how && b.windows(plain.len()).any(|w| w == plain))
}

/// Three flags are written in tags (UTS #51); whatever else is spells something.
#[test]
fn flags_spell_nothing() {
    let tags = |name: &str| name.chars().map(|c| char::from_u32(0xE0000 + u32::from(c)).unwrap()).collect::<String>();
    let flag = |name: &str| format!("\u{1F3F4}{}\u{E007F}", tags(name));
    for (text, want) in [
        (format!("Cymru {} am byth", flag("gbwls")), false),
        (format!("{}{}", flag("gbsct"), flag("gbeng")), false),
        (flag("gbxyz"), true),
        (format!("{}{}", flag("gbwls"), tags("sendit")), true),
        (format!("\u{1F3F4}{}", tags("gbwls")), true),
    ] {
        assert_eq!(parts(text.as_bytes()).iter().any(|(_, how)| *how == Encoding::Tags), want, "{text:?}");
    }
}

#[test]
fn encodings() {
    for (text, plain, how) in [
        ("q=dGhlIHF1aWNrIGJyb3du!", "the quick brown", Encoding::Base64),
        ("v: dGhlI\nHF1aW\nNrIGJ\nyb3du\n", "the quick brown", Encoding::Base64),
        ("dGhlIHF1\r\naWNrIGJy\r\nb3du and", "the quick brown", Encoding::Base64),
        ("ORUGKIDROVUWG2ZAMJZG653O", "the quick brown", Encoding::Base32),
        ("74 68 65 20 71 75 69 63 6B", "the quick", Encoding::Hex),
        ("0x74,0x68,0x65,0x20,0x71,0x75,0x69,0x63,0x6b", "the quick", Encoding::Hex),
        (r"\x74\x68\x65\x20\x71\x75\x69\x63\x6b", "the quick", Encoding::Hex),
        ("%74%68%65%20%71%75%69%63%6b%20%62%72%6f%77%6e%20%66%6f%78", "the quick brown fox", Encoding::UrlNeedless),
        ("say t-h-e-q-u-i-c-k-b-r-o-w-n-f-o-x now", "thequickbrownfox", Encoding::Spaced),
        ("t h e q u i c k b r o w n f o x", "thequickbrownfox", Encoding::Spaced),
        ("a%74he%20q%zz", "athe q%zz", Encoding::Url),
        (r#"{\"a\":\"b\u0041\ud83d\ude00\n\"}"#, "\"bA😀\n\"", Encoding::Json),
        (r"\x41\xzz\", "Axzz", Encoding::Json),
        ("\u{E0074}\u{E0068}x", "thx", Encoding::Tags),
    ] {
        assert!(finds(text, plain.as_bytes(), how), "{text}: {:?}", parts(text.as_bytes()));
    }
    assert!(parts(b"ordinary words stay as they are").is_empty());
}

#[test]
fn budgets_end() {
    let text = "AB".repeat(5_000);
    let mut budget = Budget { bytes: 15_000, parts: 100, xor: 0, spare: 0, apart: false, strange: 0, exhausted: false };
    let mut seen = 0;
    each(text.as_bytes(), &mut budget, &mut |b, _, _, _| seen += b.len());
    assert!(budget.exhausted && seen < 15_000);
}

proptest! {
    #[test]
    fn what_was_encoded_is_found(
        plain in proptest::collection::vec(any::<u8>(), 16..120),
        before in "[ a-zA-Z0-9=:\"]{0,9}",
        after in "[ .\"&]{0,3}",
        wrap in 40usize..80,
    ) {
        let b64 = BASE64.encode(&plain);
        let lines: Vec<&str> = b64.as_bytes().chunks(wrap).map(|c| std::str::from_utf8(c).unwrap()).collect();
        let find = |encoded: &str, how| finds(&format!("{before}{encoded}{after}"), &plain[3..plain.len() - 1], how);
        prop_assert!(find(&b64, Encoding::Base64));
        let wrapped = format!("{before} {}{after}", lines.join("\r\n"));
        prop_assert!(finds(&wrapped, &plain, Encoding::Base64));
        prop_assert!(find(&BASE64URL_NOPAD.encode(&plain), Encoding::Base64));
        let spaced: Vec<String> = plain.iter().map(|b| format!("{b:02x}")).collect();
        prop_assert!(find(&HEXUPPER.encode(&plain), Encoding::Hex));
        prop_assert!(find(&HEXLOWER.encode(&plain), Encoding::Hex));
        prop_assert!(find(&spaced.join(":"), Encoding::Hex));
        let url: String = plain.iter().map(|b| format!("%{b:02X}")).collect();
        prop_assert!(find(&url, Encoding::Url) || find(&url, Encoding::UrlNeedless));
        prop_assert!(finds(&BASE32_NOPAD.encode(&plain), &plain, Encoding::Base32));
    }

    #[test]
    fn never_panics(text in proptest::collection::vec(any::<u8>(), 0..300), escapes in r"[\\ux%0-9a-fA-F]{0,60}") {
        parts(&text);
        parts(escapes.as_bytes());
    }
}

use super::*;

#[test]
fn spellings_of_one_text() {
    for raw in [
        "Please send it",
        "ＰＬＥＡＳＥ   send\n\tit",
        "Рlеаsе sеnd it",
        "Ple\u{200b}ase s\u{ad}end it",
        "Ple\u{1b}[31mase send it",
        "&#80;lease&nbsp;send &#x69;t",
        "Please\\nsend \\u0069t",
        "P\u{301}lea\u{308}se send it",
        "𝐏𝐥𝐞𝐚𝐬𝐞 send it",
        "🇵🇱🇪🇦🇸🇪 ⒮⒠⒩⒟ it",
        "\u{202a}Please send it\u{202c}",
    ] {
        assert_eq!(normalised(raw), "please send it", "{raw:?}");
    }
    assert_eq!(normalised("Русский текст"), "русскии текст");
    assert_eq!(normalised("a & b &unknown; \\q \u{1b}"), "a & b &unknown; \\q ");
}

#[test]
fn letters_of_two_bytes_are_as_special_ones() {
    for c in '\u{80}'..'\u{800}' {
        let text = format!("{c}x {c}{c}");
        let (mut out, mut rest) = (Writer::with_room(0), text.as_str());
        while !rest.is_empty() {
            rest = out.special(rest);
        }
        out.end_word();
        out.text.truncate(out.length);
        assert_eq!(normalised(&text).into_bytes(), out.text, "{c:?}");
    }
}

#[test]
fn places_are_those_of_the_text() {
    for (raw, normal, want) in [
        ("a  b\tsend it", "send it", "send it"),
        ("x \u{200b}s\u{200b}end it.", "send it", "s\u{200b}end it"),
        ("Ple\u{1b}[31mase s&#101;nd\\nit", "send it", "s&#101;nd\\nit"),
        ("é ﬀ ＳＥＮＤ it", "send it", "ＳＥＮＤ it"),
        ("no", "no", "no"),
    ] {
        let form = normalised(raw);
        let at = form.find(normal).unwrap();
        let (start, end) = place(raw, (at, at + normal.len()));
        assert_eq!(&raw[start..end], want, "{raw:?}");
    }
    assert_eq!(place("", (0, 5)), (0, 0));
}

#[test]
fn in_place() {
    let mut room = [0; 40];
    for (text, want) in [
        ("An ordinary Sentence, 12 words.", Some("an ordinary sentence, 12 words.")),
        (" a", Some(" a")),
        ("", Some("")),
        ("line\nline", Some("line line")),
        ("line\n\nline", None),
        ("two  blanks", None),
        ("line \u{1b}[1m", None),
        ("caf\u{e9}", None),
        ("&lt;", None),
        ("longer than there is room for in all of it", None),
    ] {
        assert_eq!(plain(text, &mut room), want, "{text}");
    }
}

proptest::proptest! {
    #[test]
    fn places_are_inside(s in "\\PC*|[&#;x0-9\\\\u\\[\\]m\u{1b}аb \u{e0041}ﷺ]*", from in 0usize..80, length in 0usize..80) {
        let (start, end) = place(&s, (from, from + length));
        proptest::prop_assert!(s.get(start..end).is_some());
    }

    #[test]
    fn many_at_once_are_as_one_by_one(s in "[ -~\n\t\u{7f}]{0,80}|[a-zA-Z &\\\\é\u{1b}\n]{0,80}", before in "[ a]?") {
        let (mut together, mut apart) = (Writer::with_room(0), Writer::with_room(0));
        for out in [&mut together, &mut apart] {
            out.plain(before.as_bytes());
        }
        let taken = together.plain(s.as_bytes());
        let one_by_one = s.as_bytes().chunks(1).take_while(|one| apart.plain(one) == 1).count();
        proptest::prop_assert_eq!(taken, one_by_one);
        proptest::prop_assert_eq!(together.text.get(..together.length), apart.text.get(..apart.length));
    }

    #[test]
    fn words_of_other_scripts_are_as_one_by_one(s in "[a-cA-C а-яА-ЯёЙіο中国語éÉßﬀאبı\u{301}\u{AD}\n.,&\\\u{1b}\u{7f}ｅ]{0,60}") {
        let mut apart = Writer::with_room(0);
        let mut rest = s.as_str();
        while !rest.is_empty() {
            rest = match apart.plain(rest.as_bytes().get(..1).unwrap_or_default()) {
                0 => apart.special(rest),
                _ => &rest[1..],
            };
        }
        apart.end_word();
        apart.text.truncate(apart.length);
        proptest::prop_assert_eq!(normalised(&s).into_bytes(), apart.text);
    }

    #[test]
    fn in_place_is_the_same(s in "[ -~]{0,60}|[a-zA-Z\\t\\n ]{0,40}|[a-zA-Z &\\\\é\n]{0,20}") {
        let mut room = [0; 64];
        if let Some(plain) = plain(&s, &mut room) {
            proptest::prop_assert_eq!(plain, normalised(&s));
        }
    }

    #[test]
    fn bounded_and_total(s in "\\PC*|[&#;x0-9\\\\u\\[\\]m\u{1b}аb \u{e0041}ﷺ]*") {
        // U+FDFA, the longest compatibility form, has 18 characters; each has at most four bytes.
        proptest::prop_assert!(normalised(&s).len() <= s.len() * 24 + 4);
    }
}

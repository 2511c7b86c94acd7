//! Secrets that Firedoor itself puts into a server's start.
//!
//! That they are secrets need not be found out, so no rule about credentials has a say. They are the server's own, and it may
//! be sent them; another server may not.

use std::sync::Arc;

use firedoor_model::{EntryId, Millis, Untrusted};

use crate::{
    Inspector, Privacy, Sink,
    memory::{Grasp, Memory, Origin},
    randomness,
};

/// Most secrets of one start, and the longest of them: that which a keychain's item may have.
const MAX_SECRETS: usize = 1024;
const MAX_SECRET: usize = firedoor_model::secret::MAX_SECRET;

/// Bytes behind an equals sign from which on they may be a value: fewer are what base64 is filled up with.
const MIN_VALUE: usize = 3;

/// Letters below which one plain word is everybody's. `postgres` as a password would be met in half of all calls.
const MIN_WORD: usize = 12;

impl Inspector {
    /// Remembers the secrets of an entry, each by what it is called there.
    pub fn kept_secrets<'v>(
        &self,
        memory: &mut Memory,
        entry: &EntryId,
        secrets: impl IntoIterator<Item = (&'v str, &'v str)>,
        now: Millis,
    ) {
        let tool = Untrusted::new("secret");
        let origin =
            Arc::new(Origin { entry: entry.clone(), tool, at: now, sink: Sink::External, privacy: Privacy::Unknown });
        for (name, value) in secrets.into_iter().take(MAX_SECRETS).filter(|(_, value)| value.len() <= MAX_SECRET) {
            let name: Arc<str> = name.into();
            let value = bare(value);
            // Of an address with a password the password is the secret, and others may be told the host.
            let inner = self.inner(value);
            let known = inner
                .iter()
                .filter(|(part, grasp)| memory.remember_kept(&origin, part.as_bytes(), Arc::clone(&name), *grasp));
            if known.count() == 0 && !is_word(value) {
                memory.remember_kept(&origin, value.as_bytes(), name, grasp(value));
            }
        }
    }

    /// What within a value is the secret, where something is.
    fn inner<'v>(&self, value: &'v str) -> Vec<(&'v str, Grasp)> {
        // Behind a name, since some credentials are known by standing there.
        const BEFORE: &str = "secret=\"";
        let assigned = format!("{BEFORE}{value}\"");
        let hits = self.credentials.scan(assigned.as_bytes());
        let inside = |at: usize| at.checked_sub(BEFORE.len());
        let hits = hits.iter().filter_map(|hit| {
            let part = value.get(inside(hit.span.0)?..inside(hit.span.1)?)?;
            Some((part, if hit.generic { grasp(part) } else { Grasp::Parts }))
        });
        let password = password(value).map(|part| (part, grasp(part)));
        hits.chain(password).filter(|(part, _)| !is_word(part)).collect()
    }
}

/// Without what stands before a secret and is none: `--option=`, a header's name, the scheme of an authorization.
fn bare(value: &str) -> &str {
    let name =
        |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    let value = match value.split_once('=') {
        Some((option, rest)) if option.starts_with('-') && name(option) && rest.len() >= MIN_VALUE => rest,
        _ => value,
    };
    let value = match value.split_once(':') {
        Some((header, rest)) if name(header) && !rest.starts_with("//") && rest.starts_with(' ') => rest.trim_start(),
        _ => value,
    };
    match value.split_once(' ') {
        Some((scheme, rest)) if ["bearer", "basic", "token"].contains(&scheme.to_ascii_lowercase().as_str()) => {
            rest.trim()
        }
        _ => value,
    }
}

/// The password in `scheme://user:password@host`.
fn password(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    Some(authority.rsplit_once('@')?.0.split_once(':')?.1)
}

/// What was made at random is known in part. Of what a person wrote a part may be anything.
fn grasp(value: &str) -> Grasp {
    let value = value.as_bytes();
    if randomness::looks_made(value) || randomness::chosen(value) { Grasp::Parts } else { Grasp::Whole }
}

/// One word, as it would stand in a text.
fn is_word(value: &str) -> bool {
    let rest = value.get(1..).unwrap_or_default();
    (1..MIN_WORD).contains(&value.len())
        && value.bytes().all(|b| b.is_ascii_alphabetic())
        && (rest.bytes().all(|b| b.is_ascii_lowercase()) || value.bytes().all(|b| b.is_ascii_uppercase()))
}

#[cfg(test)]
mod tests {
    use firedoor_model::Confidence;

    use super::*;
    use crate::{Call, arguments::Arguments, flow, reach::Toward};

    /// A credential that no scanner finds in this file.
    fn token() -> String {
        format!("gh{}_{}", "p", "a8Kd92LmQx7Zt4Vb1Nc6Yw3Rf5Hs0Jg2Pe9U")
    }

    fn inspected(memory: &mut Memory, call: &Call<'_>) -> Vec<firedoor_model::Finding> {
        flow::inspect(memory, call, &Arguments::of(call), Toward::NOWHERE)
    }

    fn call<'a>(entry: &'a EntryId, arguments: &'a str, now: Millis) -> Call<'a> {
        Call {
            entry,
            method: "tools/call",
            subject: "send",
            arguments: Some(arguments),
            sink: Sink::External,
            schema: None,
            usual: None,
            now,
        }
    }

    /// Whether this would be asked about in a call of another server, when that is one server's secret.
    fn asked(secret: &str, sent: &str) -> bool {
        let inspector = Inspector::new();
        let (own, other): (EntryId, EntryId) = ("c/s/db".parse().unwrap(), "c/s/net".parse().unwrap());
        let mut memory = Memory::default();
        inspector.kept_secrets(&mut memory, &own, [("firedoor-secret:c/s/db/--key", secret)], Millis(1));
        let arguments = serde_json::json!({ "body": sent }).to_string();
        let mut found = |entry: &EntryId, now| {
            let found = inspected(&mut memory, &call(entry, &arguments, now));
            found.into_iter().filter(|f| f.confidence > Confidence::Possible).collect()
        };
        let itself: Vec<_> = found(&own, Millis(2));
        assert!(itself.is_empty(), "a server may be sent what is its own: {secret}");
        let elsewhere: Vec<_> = found(&other, Millis(3));
        for finding in &elsewhere {
            assert_eq!(finding.detector, "flow/secret");
            assert_eq!(finding.evidence[0].pointer.raw(), "firedoor-secret:c/s/db/--key");
            assert!(finding.evidence.iter().all(|e| e.excerpt.raw() == "••••"), "{finding:?}");
        }
        !elsewhere.is_empty()
    }

    #[test]
    fn what_is_kept_is_known_again() {
        let token = token();
        let base64 = |text: &str| data_encoding::BASE64.encode(text.as_bytes());
        for (secret, sent, want) in [
            (token.as_str(), token.clone(), true),
            (&token, base64(&token), true),
            (&token, token[..24].into(), true),
            (&format!("--token={token}"), token[4..].into(), true),
            (&format!("Bearer {token}"), token[4..].into(), true),
            // What no rule about credentials would take for one.
            ("correct horse battery staple", "it is: correct horse battery staple".into(), true),
            ("correct horse battery staple", "Correct-Horse-Battery-Staple".into(), true),
            ("correct horse battery staple", base64("correct horse battery staple"), true),
            ("--password=blue-moon-rises", "blue-moon-rises".into(), true),
            ("X-Auth: blue moon rises", "blue moon rises".into(), true),
            ("x9-y8-z7wq", "x9-y8-z7wq".into(), true),
            ("opensesameopen", "opensesameopen".into(), true),
            // Not an option with nothing behind it.
            ("-kJ8xw2QmZ7vT4pLr9Nb-Q==", "-kJ8xw2QmZ7vT4pLr9Nb-Q==".into(), true),
            ("postgres://app:blue-moon-rises@db.example:5432/app", "blue-moon-rises".into(), true),
            (
                "postgres://app:blue-moon-rises@db.example:5432/app",
                "psql postgres://app:blue-moon-rises@db.example:5432/app".into(),
                true,
            ),
            ("postgres://app:postgres@db.example:5432/app", "postgres://app:postgres@db.example:5432/app".into(), true),
            // A part of what a person wrote, and the part of an address that is no secret.
            ("correct horse battery staple", "the correct horse won".into(), false),
            ("postgres://app:blue-moon-rises@db.example:5432/app", "is db.example:5432/app up?".into(), false),
            ("postgres://app:postgres@db.example:5432/app", "pull the image postgres".into(), false),
            // What says nothing.
            ("1", "1".into(), false),
            ("true", "true".into(), false),
            ("aaaaaaaaaaaa", "aaaaaaaaaaaa".into(), false),
            ("postgres", "pull the image postgres".into(), false),
            ("", String::new(), false),
            ("PASSWORD", "PASSWORD".into(), false),
            ("x9-y8-z7wq", "x9 y8 z7wq".into(), false),
        ] {
            assert_eq!(asked(secret, &sent), want, "{secret}: {sent}");
        }
    }

    #[test]
    fn two_servers_may_have_the_same_one() {
        let inspector = Inspector::new();
        let entries: [EntryId; 5] = ["c/s/a", "c/s/b", "c/s/c", "c/s/d", "c/s/e"].map(|entry| entry.parse().unwrap());
        let [first, second, alike, itself, stranger] = &entries;
        let mut memory = Memory::default();
        // One that begins alike comes in between, and one server has it in its own configuration.
        let value = format!("sk-{}", token());
        let similar = format!("{}Zz9", &value[..value.len() - 3]);
        for (entry, value) in [(first, &value), (alike, &similar), (second, &value), (second, &value)] {
            inspector.kept_secrets(&mut memory, entry, [("ref", value.as_str())], Millis(1));
        }
        inspector.environment(&mut memory, itself, [("TOKEN", value.as_str())], Millis(1));
        assert_eq!(memory.len(), 2);
        let arguments = serde_json::json!({ "body": value }).to_string();
        for (entry, want) in [(first, false), (second, false), (itself, false), (alike, true), (stranger, true)] {
            let found = inspected(&mut memory, &call(entry, &arguments, Millis(2)));
            assert_eq!(found.iter().any(|f| f.confidence > Confidence::Possible), want, "{entry}: {found:?}");
        }
    }

    #[test]
    fn secrets_that_begin_alike_are_told_apart() {
        let inspector = Inspector::new();
        let entries: [EntryId; 3] = ["c/s/a", "c/s/b", "c/s/c"].map(|entry| entry.parse().unwrap());
        let pairs = [
            ("blue-moon-rises-dev", "blue-moon-rises-prod"),
            ("my-long-password-1", "my-long-password-2"),
            ("blue moon rises", "blue moon rises again"),
        ];
        for (one, other) in pairs.iter().flat_map(|(one, other)| [(one, other), (other, one)]) {
            let mut memory = Memory::default();
            for (entry, secret) in entries.iter().zip([one, other]) {
                inspector.kept_secrets(&mut memory, entry, [("ref", *secret)], Millis(1));
            }
            for (owner, secret) in entries.iter().zip([one, other]) {
                let arguments = serde_json::json!({ "body": secret }).to_string();
                for entry in &entries {
                    let found = inspected(&mut memory, &call(entry, &arguments, Millis(2)));
                    let asked = found.iter().find(|f| f.confidence > Confidence::Possible);
                    assert_eq!(asked.is_some(), entry != owner, "{secret} of {owner} to {entry}: {found:?}");
                    if let Some(asked) = asked {
                        assert_eq!(asked.confidence, Confidence::Certain, "{secret} to {entry}");
                        assert_eq!(asked.evidence[0].entry.as_ref(), Some(owner), "{secret} to {entry}");
                    }
                }
                assert_eq!(inspector.masked_text(&memory, &format!("it is {secret}.")), "it is ••••.");
            }
        }
    }

    #[test]
    fn one_that_repeats_itself_is_known() {
        for secret in [
            "dragon123dragon123",
            "Dragon123-Dragon123",
            "correct horse correct horse battery",
            "red-fox-red-fox-red-fox-9",
            "k7Qm2xP9rk7Qm2xP9r",
        ] {
            for sent in
                [secret.to_owned(), format!("{}{secret}", &secret[..secret.len() / 2]), format!("it is {secret} now")]
            {
                assert!(asked(secret, &sent), "{sent}");
            }
        }
    }

    #[test]
    fn short_ones_are_told_apart_as_they_are_written() {
        let entries: [EntryId; 3] = ["c/s/a", "c/s/b", "c/s/c"].map(|entry| entry.parse().unwrap());
        for (one, other) in [("Summer24!", "summer-24"), ("moon-bea8", "moon-bea87")] {
            let inspector = Inspector::new();
            let mut memory = Memory::default();
            for (entry, secret) in entries.iter().zip([one, other]) {
                inspector.kept_secrets(&mut memory, entry, [("ref", secret)], Millis(1));
            }
            for (owner, secret) in entries.iter().zip([one, other]) {
                let sent = format!("{secret} 7");
                let arguments = serde_json::json!({ "body": sent }).to_string();
                for entry in &entries {
                    let found = inspected(&mut memory, &call(entry, &arguments, Millis(2)));
                    let asked = found.iter().any(|f| f.confidence > Confidence::Possible);
                    // Of two of which one begins with the other nobody is told which is meant.
                    assert!(asked || entry == owner, "{secret} of {owner} to {entry}: {found:?}");
                    assert!(!asked || entry != owner || other.starts_with(one), "{secret} to its own: {found:?}");
                }
                let masked = inspector.masked_text(&memory, &sent);
                assert!(masked.starts_with("••••") && !masked.contains(secret), "{masked}");
            }
        }
    }

    #[test]
    fn many_that_begin_alike_cost_no_more_than_a_few() {
        let inspector = Inspector::new();
        let entry: EntryId = "c/s/a".parse().unwrap();
        let mut memory = Memory::default();
        let head = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9";
        let secret = |i: usize| format!("{head}{:016x}", (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        for i in 0..200 {
            inspector.kept_secrets(&mut memory, &entry, [("ref", secret(i).as_str())], Millis(1));
        }
        assert_eq!(memory.len(), 200);
        let text = crate::fold::folded(head.repeat(100).as_bytes());
        let mut runs = 0;
        flow::runs(&memory, &text, false, &mut |_, _, _, _| runs += 1);
        // How many of the 200 are met depends on the keys of the table's hash: ten of them, or eleven in one run of ten.
        assert!((1..=100 * 20).contains(&runs), "{runs}");
        // Each is known all the same.
        let stranger: EntryId = "c/s/b".parse().unwrap();
        for i in [0, 100, 199] {
            let arguments = serde_json::json!({ "body": secret(i) }).to_string();
            let found = inspected(&mut memory, &call(&stranger, &arguments, Millis(2)));
            assert_eq!(found.iter().filter(|f| f.confidence == Confidence::Certain).count(), 1, "{i}: {found:?}");
        }
    }

    #[test]
    fn a_server_with_the_same_one_in_its_configuration_is_not_asked_about_in_any_order() {
        let [own, other]: [EntryId; 2] = ["c/s/a", "c/s/b"].map(|entry| entry.parse().unwrap());
        for value in [token(), "correct horse battery staple".to_owned(), "Blue-Moon-7-rises".to_owned()] {
            for first in [&own, &other] {
                let inspector = Inspector::new();
                let mut memory = Memory::default();
                for entry in if *first == own { [&own, &other] } else { [&other, &own] } {
                    match *entry == own {
                        true => inspector.kept_secrets(&mut memory, entry, [("ref", value.as_str())], Millis(1)),
                        false => inspector.environment(&mut memory, entry, [("DB_WORD", value.as_str())], Millis(1)),
                    }
                }
                let arguments = serde_json::json!({ "body": value }).to_string();
                let found = inspected(&mut memory, &call(&other, &arguments, Millis(2)));
                assert!(found.iter().all(|f| f.confidence <= Confidence::Possible), "{value}, {first}: {found:?}");
            }
        }
    }

    #[test]
    fn a_secret_is_the_keychains_wherever_it_was_seen_first() {
        let inspector = Inspector::new();
        let (own, other): (EntryId, EntryId) = ("c/s/db".parse().unwrap(), "c/s/files".parse().unwrap());
        let mut memory = Memory::default();
        let value = token();
        let variables = [("TOKEN", value.as_str())];
        inspector.environment(&mut memory, &other, variables, Millis(1));
        for _ in 0..3 {
            inspector.kept_secrets(&mut memory, &own, [("ref", value.as_str())], Millis(2));
            inspector.environment(&mut memory, &own, variables, Millis(3));
        }
        assert_eq!(memory.len(), 2);
        assert!(!format!("{memory:?}").contains(&value));
    }
}

//! Credentials in text: one pass over all formats' keywords, then one anchored regex where a keyword stands.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use firedoor_model::Digest;
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;

use crate::{TableError, decode, randomness};

/// Most credentials reported for one text.
pub(crate) const MAX_HITS: usize = 256;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    published: Vec<String>,
    rule: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    keywords: Vec<String>,
    regex: String,
    #[serde(default = "default_entropy")]
    entropy: f64,
    #[serde(default)]
    inside: bool,
    #[serde(default = "default_window")]
    window: usize,
    #[serde(default)]
    generic: bool,
}

fn default_entropy() -> f64 {
    3.0
}

fn default_window() -> usize {
    256
}

/// One format, its regex compiled when its keyword is first met.
#[derive(Debug)]
struct Rule {
    row: Row,
    regex: OnceLock<Option<Regex>>,
}

impl Rule {
    /// `None` only for a pattern that does not compile, which a test excludes.
    fn regex(&self) -> Option<&Regex> {
        let build = || RegexBuilder::new(&self.row.regex).unicode(false).size_limit(4 << 20).build().ok();
        self.regex.get_or_init(build).as_ref()
    }
}

/// A credential in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hit<'r> {
    /// The rule's id.
    pub(crate) rule: &'r str,
    /// Byte offsets of the secret part.
    pub(crate) span: (usize, usize),
    /// Known by its place only, not by its form.
    pub(crate) generic: bool,
}

/// The formats of `profiles/detect/credentials.toml`.
#[derive(Debug)]
pub(crate) struct Credentials {
    rules: Vec<Rule>,
    matcher: AhoCorasick,
    /// The rule of each keyword.
    owner: Vec<usize>,
    /// First 16 hex digits of the digests of secrets that are none, sorted.
    published: Vec<String>,
}

impl Credentials {
    pub(crate) fn load(text: &str) -> Result<Self, TableError> {
        let table = |e: &dyn std::fmt::Display| TableError::new("credentials.toml", e);
        let file: File = toml::from_str(text).map_err(|e| table(&e))?;
        let mut keywords = Vec::new();
        let mut owner = Vec::new();
        for (i, row) in file.rule.iter().enumerate() {
            keywords.extend(row.keywords.iter().map(|k| k.to_ascii_lowercase()));
            owner.extend(row.keywords.iter().map(|_| i));
        }
        // A DFA, because every byte of every message passes here: about a nanosecond each.
        let matcher = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&keywords)
            .map_err(|e| table(&e))?;
        let rules = file.rule.into_iter().map(|row| Rule { row, regex: OnceLock::new() }).collect();
        let mut published = file.published;
        published.sort();
        Ok(Self { rules, matcher, owner, published })
    }

    /// The credentials in `text`, by place; of overlapping ones the format that is listed first. At most [`MAX_HITS`],
    /// and the regexes may look at 64 bytes for each byte of text.
    pub(crate) fn scan(&self, text: &[u8]) -> Vec<Hit<'_>> {
        let mut hits: Vec<(usize, Hit<'_>)> = Vec::new();
        let mut budget = text.len().saturating_mul(64).saturating_add(64 * 1024);
        for found in self.matcher.find_overlapping_iter(text) {
            let Some((index, rule)) =
                self.owner.get(found.pattern().as_usize()).and_then(|i| self.rules.get(*i).map(|r| (*i, r)))
            else {
                continue;
            };
            let start = found.start();
            let before = start.checked_sub(1).and_then(|i| text.get(i)).copied().unwrap_or(b' ');
            if !rule.row.inside && (before.is_ascii_alphanumeric() || before == b'_') {
                continue;
            }
            // Inside a credential that was already found at this place by the same rule.
            if hits.iter().rev().take(4).any(|(i, h)| *i == index && start < h.span.1) {
                continue;
            }
            let end = text.len().min(start.saturating_add(rule.row.window));
            let window = text.get(start..end).unwrap_or_default();
            let Some(captures) = rule.regex().and_then(|r| r.captures(window)) else {
                budget = budget.saturating_sub(8);
                continue;
            };
            budget = budget.saturating_sub(captures.get(0).map_or(0, |m| m.len()));
            if budget == 0 || hits.len() >= MAX_HITS {
                break;
            }
            let Some(secret) = captures.name("secret").or_else(|| captures.name("claims")) else { continue };
            let json = captures.name("json").is_none_or(|m| decode::base64_json(m.as_bytes()));
            if json && plausible(&rule.row, secret.as_bytes()) && !self.is_published(secret.as_bytes()) {
                let span = (start + secret.start(), start + secret.end());
                hits.push((index, Hit { rule: &rule.row.id, span, generic: rule.row.generic }));
            }
        }
        // The same characters under two rules are one credential: the more exact rule stands first in the file.
        hits.sort_by_key(|(index, h)| (*index, h.span));
        let mut out: Vec<Hit<'_>> = Vec::new();
        for (_, hit) in hits {
            if !out.iter().any(|o| o.span.0 < hit.span.1 && hit.span.0 < o.span.1) {
                out.push(hit);
            }
        }
        out.sort_by_key(|h| h.span);
        out
    }

    /// Whether documentation shows this very secret as an example.
    fn is_published(&self, secret: &[u8]) -> bool {
        let digest = Digest::of(secret).to_string();
        let start = digest.get(..16).unwrap_or_default();
        self.published.binary_search_by(|p| p.as_str().cmp(start)).is_ok()
    }

    /// Whether a member of this name holds a secret, so that its value is read as an assignment.
    pub(crate) fn names_secret(&self, key: &str) -> bool {
        key.len() <= 64
            && self.matcher.find_overlapping_iter(key).any(|m| {
                let rule = self.owner.get(m.pattern().as_usize()).and_then(|i| self.rules.get(*i));
                rule.is_some_and(|r| r.row.inside && !key.contains("://"))
            })
    }
}

fn plausible(row: &Row, secret: &[u8]) -> bool {
    if randomness::entropy(secret) < row.entropy || randomness::placeholder(secret) {
        return false;
    }
    !row.generic || randomness::looks_made(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn table() -> Credentials {
        Credentials::load(include_str!("../../../profiles/detect/credentials.toml")).unwrap()
    }

    /// Text that no scanner of this repository takes for a secret, because it exists at run time only.
    fn made(alphabet: &str, length: usize) -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        let mut state = 0x9E37_79B9u32;
        std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            letters[(state >> 16) as usize % letters.len()]
        })
        .take(length)
        .collect()
    }

    const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    const HEX: &str = "0123456789abcdef";

    #[test]
    fn every_rule_compiles_and_has_its_group() {
        for rule in table().rules {
            let regex = rule.regex().unwrap_or_else(|| panic!("{} does not compile", rule.row.id));
            assert!(regex.capture_names().flatten().any(|n| n == "secret"), "{}", rule.row.id);
            assert!(rule.row.regex.starts_with('^'), "{} is not anchored", rule.row.id);
            assert!(rule.row.keywords.iter().all(|k| k.is_ascii() && k.len() >= 3), "{}", rule.row.id);
        }
    }

    #[test]
    fn formats() {
        let table = table();
        let a = |n| made(ALNUM, n);
        let pem = format!("-----BEGIN {} KEY-----\n{}\n{}\n-----END", "RSA PRIVATE", a(64), a(64));
        let json = |text: &str| data_encoding::BASE64URL_NOPAD.encode(text.as_bytes());
        let claims = format!("{{\"sub\":\"{}\"}}", a(12));
        let jwt = format!(" {}.{}.{}", json("{\"alg\":\"HS256\"}"), json(&claims), a(43));
        let not_json = format!(" ey{}.{}.{}", format_args!("J{}", a(30)), json(&claims), a(43));
        assert_eq!(table.scan(not_json.as_bytes()), []);
        for (rule, text) in [
            ("aws-access-key-id", format!("key AK{}{}", "IA", made("ABCDEFGHJKLMNPQR234567", 16))),
            ("aws-secret-access-key", format!("AWS_SECRET_ACCESS_{}={}", "KEY", a(40))),
            ("github-token", format!("gh{}_{}", "p", a(36))),
            ("github-fine-grained-token", format!("github_{}_{}", "pat", a(82))),
            ("gitlab-token", format!("gl{}-{}", "pat", a(20))),
            ("slack-token", format!("xo{}-{}", "xb", a(50))),
            ("stripe-key", format!("sk_{}_{}", "live", a(24))),
            ("anthropic-key", format!("sk-{}-api03-{}AA", "ant", a(93))),
            ("openai-key", format!("sk-{}-{}", "proj", a(80))),
            ("google-api-key", format!("AI{}{}", "za", a(35))),
            ("npm-token", format!("np{}_{}", "m", a(36))),
            ("pypi-token", format!("pypi-AgEIcHlwaS5vc{}{}", "mc", a(120))),
            ("private-key", pem.clone()),
            ("private-key", pem.replace('\n', "\\n")),
            ("jwt", jwt),
            ("url-password", format!("postgres://app:{}@db:5432/x", a(14))),
            ("authorization-header", format!("Authorization: {} {}", "Bearer", a(32))),
            ("assigned-secret", format!("db_password = \"{}\"", a(16))),
            ("assigned-secret", format!("API_TOKEN={}", made(HEX, 40))),
            ("curl-user", format!("curl -u me:{} x", a(12))),
            ("saas-token", format!("lin_{}_{}", "api", a(40))),
            ("vault-token", format!("hv{}.{}", "s", a(60))),
        ] {
            let hits = table.scan(text.as_bytes());
            assert_eq!(hits.iter().map(|h| h.rule).collect::<Vec<_>>(), [rule], "{rule}");
            assert!(!hits[0].span.0.eq(&0), "{rule}: the prefix is not part of the secret");
        }
    }

    #[test]
    fn ordinary_text_has_none() {
        let table = table();
        for text in [
            "password: str = os.environ[\"DB_PASSWORD\"]",
            "token=${GITHUB_TOKEN}",
            "api_key: <your key here>",
            "secret=changeme-please-now",
            "password = 'xxxxxxxxxxxxxxxx'",
            "token: {{ secrets.DEPLOY_TOKEN }}",
            "AKIAIOSFODNN7EXAMPLE",
            "postgres://user:password@localhost/db",
            "the secret: everything that was said",
            "token = parser.next_token()",
            "https://example.org:8080/a@b",
            "access_token_url='https://example.org/oauth/access_token'",
            "API_KEY=test-key-12345678",
            "credentialsId: 'ff083f76-7804-4ef1-80e4-fe975bb9141b'",
            "jsonwebtoken:jjwt-jackson-0.11.2",
            "sk-learn-contrib-something-or-other",
        ] {
            assert_eq!(table.scan(text.as_bytes()), [], "{text}");
        }
    }

    #[test]
    fn published_examples_are_no_secrets() {
        let token = format!("gh{}_{}", "p", made(ALNUM, 36));
        let mut table = table();
        assert!(table.published.iter().all(|p| p.len() == 16 && p.bytes().all(|b| b.is_ascii_hexdigit())));
        assert_eq!(table.scan(token.as_bytes()).len(), 1);
        table.published = vec![Digest::of(&token.as_bytes()[4..]).to_string()[..16].to_owned()];
        assert_eq!(table.scan(token.as_bytes()), []);
    }

    #[test]
    fn a_broken_table_is_named() {
        for text in ["rule = 5", "[[rule]]\nid = \"x\"", "[[rule]]\nid = \"x\"\nkeywords = []\nregex = \"\"\nother = 1"]
        {
            let error = Credentials::load(text).unwrap_err().to_string();
            assert!(error.starts_with("profiles/detect/credentials.toml: "), "{error}");
        }
    }

    #[test]
    fn cost_is_bounded() {
        let table = table();
        for text in ["-----BEGIN ", "eyJ.", "token=", "://:a", "password", "Authorization:"] {
            table.scan(text.repeat(200_000 / text.len()).as_bytes());
        }
        let many: String = (0..1000).map(|_| format!("gh{}_{} ", "p", made(ALNUM, 36))).collect();
        assert!(table.scan(many.as_bytes()).len() <= MAX_HITS);
    }
}

//! Credentials in text: one pass over all formats' keywords, then one anchored regex where a keyword stands.

use std::sync::OnceLock;

use firedoor_model::{Confidence, Digest};
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;

use crate::{TableError, decode, keywords::Keywords, randomness};

/// Most credentials reported for one text.
pub(crate) const MAX_HITS: usize = 256;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    published: Vec<String>,
    rule: Vec<Row>,
    #[serde(default)]
    issuer: Vec<Issuer>,
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
    before: usize,
    #[serde(default)]
    generic: bool,
    #[serde(default = "yes")]
    made: bool,
    #[serde(default)]
    chosen: bool,
    #[serde(default)]
    unless: Vec<String>,
    #[serde(default)]
    checksum: Option<Checksum>,
    /// Made of an [`Issuer`].
    #[serde(skip)]
    named: bool,
}

/// How a format checks itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum Checksum {
    #[serde(rename = "crc32-base62")]
    Crc32Base62,
}

/// A key whose form only its issuer's name tells from other values.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Issuer {
    id: String,
    names: Vec<String>,
    form: String,
}

impl Issuer {
    /// The name, up to twenty characters of an identifier, an assignment, the value: the shape of gitleaks' rules.
    fn row(self) -> Row {
        let names: Vec<String> = self.names.iter().map(|n| regex::escape(n)).collect();
        let regex = format!(
            r#"^(?i:{})[\w.\- \t]{{0,20}}[\s'"]{{0,3}}(?:=>|:{{1,3}}=|\|\||\?=|[=>:,])[\s'"`=]{{0,5}}(?<secret>{})(?:[\s'"`;,)}}\\]|$)"#,
            names.join("|"),
            self.form
        );
        Row {
            id: self.id,
            keywords: self.names,
            regex,
            entropy: 2.5,
            inside: true,
            window: 320,
            before: 0,
            generic: false,
            made: false,
            chosen: false,
            unless: Vec::new(),
            checksum: None,
            named: true,
        }
    }
}

fn yes() -> bool {
    true
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
    /// Its checksum is right.
    pub(crate) checked: bool,
}

impl Hit<'_> {
    /// How sure it is that this is a credential.
    pub(crate) fn confidence(&self) -> Confidence {
        match (self.generic, self.checked) {
            (true, _) => Confidence::Possible,
            (false, false) => Confidence::Likely,
            (false, true) => Confidence::Certain,
        }
    }
}

/// The formats of `profiles/detect/credentials.toml`.
#[derive(Debug)]
pub(crate) struct Credentials {
    rules: Vec<Rule>,
    matcher: Keywords,
    /// The rule of each keyword.
    owner: Vec<usize>,
    /// First 16 hex digits of the digests of secrets that are none, sorted.
    published: Vec<String>,
}

impl Credentials {
    pub(crate) fn load(text: &str) -> Result<Self, TableError> {
        let table = |e: &dyn std::fmt::Display| TableError::new("credentials.toml", e);
        let file: File = toml::from_str(text).map_err(|e| table(&e))?;
        // Of overlapping hits the first rule's counts: a form of its own, then an issuer's name, then a mere place.
        let (generic, exact): (Vec<Row>, Vec<Row>) = file.rule.into_iter().partition(|r| r.generic);
        let rows: Vec<Row> = exact.into_iter().chain(file.issuer.into_iter().map(Issuer::row)).chain(generic).collect();
        let mut keywords = Vec::new();
        let mut owner = Vec::new();
        for (i, row) in rows.iter().enumerate() {
            // A regex without regard to case says so; of all others the keyword is a part as it stands.
            let exact = !row.regex.contains("(?i");
            keywords.extend(row.keywords.iter().map(|k| (k, exact)));
            owner.extend(row.keywords.iter().map(|_| i));
        }
        let matcher = Keywords::with_case(keywords);
        let rules = rows.into_iter().map(|row| Rule { row, regex: OnceLock::new() }).collect();
        let mut published = file.published;
        published.sort();
        Ok(Self { rules, matcher, owner, published })
    }

    /// The credentials in `text`, by place; of overlapping ones the format that is listed first. At most [`MAX_HITS`],
    /// and the regexes may look at 64 bytes for each byte of text.
    pub(crate) fn scan(&self, text: &[u8]) -> Vec<Hit<'_>> {
        let mut hits: Vec<(usize, Hit<'_>)> = Vec::new();
        let mut budget = text.len().saturating_mul(64).saturating_add(64 * 1024);
        self.matcher.each(text, |met| {
            let index = self.owner.get(met.word).copied().unwrap_or_default();
            let Some(rule) = self.rules.get(index) else { return true };
            let start = met.start.saturating_sub(rule.row.before);
            if !rule.row.unless.is_empty() && preceded(text, start, &rule.row.unless) {
                return true;
            }
            let before = start.checked_sub(1).and_then(|i| text.get(i)).copied().unwrap_or(b' ');
            if !rule.row.inside && (before.is_ascii_alphanumeric() || before == b'_') {
                return true;
            }
            // Inside a credential that was already found at this place by the same rule.
            if hits.iter().rev().take(4).any(|(i, h)| *i == index && start < h.span.1) {
                return true;
            }
            let end = text.len().min(met.start.saturating_add(rule.row.window));
            let window = text.get(start..end).unwrap_or_default();
            let Some(captures) = rule.regex().and_then(|r| r.captures(window)) else {
                budget = budget.saturating_sub(8);
                return true;
            };
            budget = budget.saturating_sub(captures.get(0).map_or(0, |m| m.len()));
            if budget == 0 || hits.len() >= MAX_HITS {
                return false;
            }
            let named = ["secret", "claims", "other", "third", "only"].into_iter().find_map(|name| captures.name(name));
            let Some(secret) = named else { return true };
            let json = captures.name("json").is_none_or(|m| decode::base64_json(m.as_bytes()));
            let basic = captures.name("basic").is_none_or(|m| decode::base64_pair(m.as_bytes()));
            if json && basic && plausible(&rule.row, secret.as_bytes()) && !self.is_published(secret.as_bytes()) {
                let span = (start + secret.start(), start + secret.end());
                let checked = rule.row.checksum.is_some_and(|c| c.holds(secret.as_bytes()));
                hits.push((index, Hit { rule: &rule.row.id, span, generic: rule.row.generic, checked }));
            }
            true
        });
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
        let mut names = false;
        if key.len() <= 64 && !key.contains("://") {
            self.matcher.each(key.as_bytes(), |met| {
                let rule = self.owner.get(met.word).and_then(|i| self.rules.get(*i));
                names = rule.is_some_and(|r| r.row.inside);
                !names
            });
        }
        names
    }
}

impl Checksum {
    fn holds(self, secret: &[u8]) -> bool {
        match self {
            // github.blog, 2021-04-05 "Behind GitHub's new authentication token formats": CRC-32 of what stands before,
            // in base 62 (digits, capitals, small letters), padded with zeros to six characters. npm does the same.
            Self::Crc32Base62 => {
                let Some((body, tail)) = secret.len().checked_sub(6).and_then(|at| secret.split_at_checked(at)) else {
                    return false;
                };
                let mut crc = flate2::Crc::new();
                crc.update(body);
                let digit = |b: &u8| match b {
                    b'0'..=b'9' => Some(b - b'0'),
                    b'A'..=b'Z' => Some(b - b'A' + 10),
                    b'a'..=b'z' => Some(b - b'a' + 36),
                    _ => None,
                };
                let said = tail.iter().try_fold(0u64, |n, b| Some(n * 62 + u64::from(digit(b)?)));
                said == Some(u64::from(crc.sum()))
            }
        }
    }
}

/// Whether one of these words stands just before `at`, with at most one `-` or `_` between.
fn preceded(text: &[u8], at: usize, words: &[String]) -> bool {
    let head = text.get(..at).unwrap_or_default();
    let head = head.strip_suffix(b"_").or_else(|| head.strip_suffix(b"-")).unwrap_or(head);
    words.iter().any(|w| {
        head.len()
            .checked_sub(w.len())
            .and_then(|from| head.get(from..))
            .is_some_and(|t| t.eq_ignore_ascii_case(w.as_bytes()))
    })
}

fn plausible(row: &Row, secret: &[u8]) -> bool {
    if randomness::entropy(secret) < row.entropy || randomness::placeholder(secret) {
        return false;
    }
    if row.named {
        return secret.iter().any(u8::is_ascii_digit);
    }
    let made = || !row.made || randomness::looks_made(secret) || row.chosen && randomness::chosen(secret);
    !row.generic || made() && !randomness::written(secret)
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

    fn uuid() -> String {
        let h = made(HEX, 32);
        format!("{}-{}-{}-{}-{}", &h[..8], &h[8..12], &h[12..16], &h[16..20], &h[20..])
    }

    const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    const HEX: &str = "0123456789abcdef";

    #[test]
    fn every_rule_compiles_and_has_its_group() {
        for rule in table().rules {
            let regex = rule.regex().unwrap_or_else(|| panic!("{} does not compile", rule.row.id));
            assert!(regex.capture_names().flatten().any(|n| n == "secret"), "{}", rule.row.id);
            assert!(regex.captures_len() <= 8 && rule.row.window <= 16384 && rule.row.before <= 128, "{}", rule.row.id);
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
            ("aws-access-key-id", format!("key A3T{}", made("ABCDEFGHJKLMNPQR234567", 17))),
            ("mailchimp-key", format!("the key {}-us12", made(HEX, 32))),
            ("azure-client-secret", format!("value: {}8Q~{}", a(3), a(34))),
            ("maxmind-license-key", format!("x {}_{}_mmk", a(6), a(29))),
            ("curl-user", format!("curl -s --user me@example.net:{} https://x", a(12))),
            ("curl-user", format!("curl -u ':{}' https://x", a(12))),
            ("adafruit-named-key", format!("ADAFRUIT_IO_KEY = \"{}\"", made(HEX, 32))),
            ("heroku-named-key", format!("heroku.auth => '{}'", uuid())),
            ("datadog-named-key", format!("\"datadog_api\": \"{}\"", made(HEX, 32))),
            ("twitter-named-key", format!("twitter_secret: {}", a(50))),
            ("telegram-bot-id-and-token", format!("bot 123456789:AA{}", a(33))),
            (
                "basic-authorization",
                format!("authorization: Basic {}", data_encoding::BASE64.encode(format!("me:{}", a(9)).as_bytes())),
            ),
            ("assigned-secret", format!("fbApiKey:            \"{}\",", made(HEX, 32))),
            ("assigned-secret", format!("define('API_KEY', '{}')", made(HEX, 32))),
            ("assigned-secret", format!("<api_key>{}</api_key>", made(HEX, 32))),
            ("assigned-secret", format!("{{\\\"token\\\":\\\"{}\\\"}}", a(24))),
            ("assigned-secret", format!("SECRET_KEY_PROD={}", made(HEX, 40))),
            ("assigned-password", "\"vm_password\": \"Blueskies!\"".into()),
            ("assigned-password", "DB_PASSWORD=mycoin!1\n".into()),
            ("command-line-secret", format!("tool login --token {} x", a(24))),
            ("command-line-secret", "Connect-VIServer -Password VMware1!".into()),
            ("dotnet-config-password", "<add key=\"MailPassword\" value=\"Prestig$rel\"/>".into()),
            (
                "dotnet-network-credential",
                format!("new NetworkCredential(\"me@x.example\", \"{}\")", made("bcdfghjklmnpqrstvwxz", 16)),
            ),
            ("unix-password-hash", format!("root:$6${}${}:19000:0:", a(16), a(86))),
            ("unix-password-hash", format!("me:$2y$10${}", a(53))),
            ("newrelic-license-key", format!("license: {}NRAL", made(HEX, 36))),
            ("newrelic-key", format!("key NRAA-{}", made(HEX, 27))),
            ("kubeadm-token", format!("kubeadm join --token {}.{}", made(HEX, 6), made("bcdfghjklmnpqrstvwxz", 16))),
            ("salesforce-session", format!("00D{}!{}", a(12), a(96))),
            ("thingsboard-device-token", format!("coap://x.example/api/v1/{}/telemetry", a(20))),
            ("twitch-stream-key", format!("live_126031192_{}", a(30))),
            ("vault-unseal-key", format!("Unseal Key 1: {}", data_encoding::BASE64.encode(a(33).as_bytes()))),
            ("appsync-key", format!("key: da2-{}", made("abcdefghjkmnpqrstuvwxyz0123456789", 26))),
            ("azure-devops-named-key", format!("ado_pat = \"{}\"", made("abcdefghjkmnpqrstuvwxyz234567", 52))),
            ("netrc-password", format!("machine api.example.net login me password {}", a(9))),
            ("connection-string-password", format!("Server=db;User Id=app;Password={};", a(12))),
            ("otp-secret", format!("otpauth://totp/x:me?issuer=x&secret={}", made("ABCDEFGHJKLMNPQR234567", 32))),
            ("kubernetes-secret", format!("kind: Secret\nmetadata:\n  name: x\ndata:\n  key: {}==", a(22))),
            (
                "private-key-in-base64",
                format!("client-key-data: {}", data_encoding::BASE64.encode(pem.replace("--\n", "--\r\n").as_bytes())),
            ),
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
            "\"nextPageToken\": \"CAUQAA3x9Zk2Lm8Qp\"",
            "csrf_token=8Zk2Lm8Qp4xW9vT1",
            "facebook: https://facebook.com/pages/x1",
            "linear-gradient(90deg, #aabbcc 0%, #001122 100%)",
            "twitter: someuser_with_a_long_name",
            "sentry-release=abcdefghij",
            "curl -u $USER:$PASSWORD https://x",
            "curl --user \"user:password\" https://x",
            "basic knowledge of the language and basic AAAAbbbb1234cccc",
            "machine learning login page password reset",
            "\"trust\", \"password\", \"scram-sha-256\", \"md5\"",
            "\"password\": \"Mot-de-passe1\"",
            "password = Settings.Db1Password",
            "getCredentials(-token someIdentifierName)",
            "dapiDataGetTopLongShortPositionRatio (params)",
            "POSTGRES_PASSWORD=postgres",
            "password: \"P@ssw0rd\"",
        ] {
            assert_eq!(table.scan(text.as_bytes()), [], "{text}");
        }
    }

    #[test]
    fn many_issuers_are_known() {
        let table = table();
        let mut ids: Vec<&str> = table.rules.iter().map(|r| r.row.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), table.rules.len(), "each rule has a name of its own");
        assert!(ids.len() >= 150, "{}", ids.len());
    }

    #[test]
    fn checksums_make_sure() {
        let table = table();
        // 30 characters and their CRC-32 in base 62, worked out here apart from the code that is tested.
        let body = made(ALNUM, 30);
        let mut crc = 0xFFFF_FFFFu32;
        for b in body.bytes() {
            crc ^= u32::from(b);
            for _ in 0..8 {
                crc = if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
            }
        }
        let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let tail: String = (0..6).rev().map(|p| char::from(digits[(!crc / 62u32.pow(p) % 62) as usize])).collect();
        let confidence = |text: String| table.scan(text.as_bytes()).first().map(Hit::confidence);
        for prefix in ["ghp", "npm"] {
            assert_eq!(confidence(format!("{prefix}_{body}{tail}")), Some(Confidence::Certain), "{prefix}");
            assert_eq!(confidence(format!("{prefix}_{body}AAAAA0")), Some(Confidence::Likely), "{prefix}");
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
        let each: Vec<String> = table.rules.iter().flat_map(|r| r.row.keywords.clone()).collect();
        let often =
            ["eyJ.", "token=", "://:a", "password", "curl -u ", "ibm ibm=", "machine a login b "].map(str::to_owned);
        for text in each.iter().chain(&often) {
            table.scan(text.repeat(8_000 / text.len()).as_bytes());
        }
        let many: String = (0..1000).map(|_| format!("gh{}_{} ", "p", made(ALNUM, 36))).collect();
        assert!(table.scan(many.as_bytes()).len() <= MAX_HITS);
    }
}

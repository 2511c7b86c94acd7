//! Values in a configuration that look like a credential in clear.
//!
//! When its entry is protected it moves into the keychain. So this errs on the side of naming a credential only where
//! name or form say so; it never reports the value.

/// Beginnings that only credentials have. Sources: GitHub, GitLab, Slack, AWS, Stripe, OpenAI, Anthropic, Google, npm,
/// PyPI, Hugging Face, Supabase, DigitalOcean, SendGrid, Shopify, Linear, Notion, Tavily, Replicate, Groq, Perplexity,
/// Figma, Airtable, Databricks, Doppler: their documentation of token formats.
const PREFIXES: &[&str] = &[
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xoxe-",
    "xapp-",
    "AKIA",
    "ASIA",
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "rk_test_",
    "AIza",
    "ya29.",
    "npm_",
    "pypi-",
    "hf_",
    "sbp_",
    "dop_v1_",
    "SG.",
    "shpat_",
    "shpss_",
    "lin_api_",
    "secret_",
    "ntn_",
    "tvly-",
    "r8_",
    "gsk_",
    "pplx-",
    "figd_",
    "patx",
    "dapi",
    "dp.pt.",
    "-----BEGIN",
];

/// Words that make a name that of a credential.
const WORDS: &[&str] = &[
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "apikey",
    "api_key",
    "accesskey",
    "access_key",
    "privatekey",
    "private_key",
    "credential",
    "credentials",
    "auth",
    "authorization",
    "bearer",
    "pat",
    "dsn",
];

use firedoor_model::SecretRef;

use crate::catalog::Interpolation;

/// Whether a literal value, given to a name, is a credential. References such as `${VAR}` are not; the default of
/// `${VAR:-default}` is looked at.
pub(crate) fn in_clear(rules: Interpolation, name: Option<&str>, value: &str) -> bool {
    if SecretRef::read(value).is_some() {
        return false;
    }
    let literal = rules.literal(value);
    let literal = literal.trim();
    if literal.is_empty() {
        return false;
    }
    if literal.split([' ', '=', ',', '"', '\'', ':']).any(has_prefix)
        || literal.split_whitespace().any(|w| url_password(w) || jwt(w))
        || header(literal)
    {
        return true;
    }
    // Which variables are set where the client runs is not known here.
    if rules == Interpolation::ShellNames && variable(literal) {
        return false;
    }
    name.is_some_and(|n| credential_name(n) && !harmless(literal)) || (name.is_some() && random(literal))
}

/// Whether a value, given to a name or not, is a credential: also one that is a part of an address.
pub fn looks_like_secret(name: Option<&str>, value: &str) -> bool {
    in_clear(Interpolation::None, name, value) || in_url(Interpolation::None, value)
}

/// A password, or a parameter with a credential's name or form.
pub(crate) fn in_url(rules: Interpolation, url: &str) -> bool {
    let query = url.split_once('?').map(|(_, query)| query).unwrap_or_default();
    let mut pairs = query.split(['&', '#', ';']).filter_map(|pair| pair.split_once('='));
    in_clear(rules, None, url)
        || pairs.any(|(name, value)| in_clear(rules, Some(name), value))
        || url.split(['/', '?', '#']).skip(3).any(|part| in_clear(rules, None, part))
}

/// Whether the argument at this place is, or carries, a credential: `--token=X`, `--token X`, `-H "Authorization: X"`.
pub(crate) fn arg_in_clear<S: AsRef<str>>(rules: Interpolation, args: &[S], at: usize) -> bool {
    let Some(arg) = args.get(at).map(AsRef::as_ref) else { return false };
    if let Some((flag, value)) = arg.split_once('=')
        && credential_name(flag)
        && in_clear(rules, Some(flag), value)
    {
        return true;
    }
    let before = at.checked_sub(1).and_then(|i| args.get(i)).map(AsRef::as_ref);
    let flag = before.filter(|b| b.starts_with('-') && !b.contains('=') && credential_name(b));
    in_clear(rules, None, arg) || flag.is_some_and(|f| !arg.starts_with('-') && in_clear(rules, Some(f), arg))
}

/// The name of a variable, as they are written by convention.
fn variable(text: &str) -> bool {
    text.contains('_') && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}

/// A prefix, and enough behind it to be more than a word.
fn has_prefix(word: &str) -> bool {
    PREFIXES.iter().any(|p| word.strip_prefix(p).is_some_and(|rest| rest.len() >= 12 || *p == "-----BEGIN"))
}

/// `scheme://user:password@host`.
fn url_password(word: &str) -> bool {
    let Some((_, rest)) = word.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority
        .rsplit_once('@')
        .and_then(|(user, _)| user.split_once(':'))
        .is_some_and(|(_, password)| !password.is_empty())
}

/// Three base64url parts, the first of which is a JSON object.
fn jwt(word: &str) -> bool {
    word.starts_with("eyJ") && word.split('.').filter(|p| p.len() >= 4).count() >= 3
}

/// `Authorization: Bearer X`, `X-Api-Key: X`.
fn header(text: &str) -> bool {
    let Some((name, value)) = text.split_once(':') else { return false };
    let value = value.trim();
    let value = value.strip_prefix("Bearer").or_else(|| value.strip_prefix("Basic")).unwrap_or(value).trim();
    name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') && credential_name(name) && !harmless(value)
}

fn credential_name(name: &str) -> bool {
    let name = name.trim_start_matches('-').to_ascii_lowercase().replace('-', "_");
    // "TOKENIZER", "AUTHOR", "PATH" and "AUTH_MODE" are none: words count whole, and the last part says what it is.
    let parts: Vec<&str> = name.split(['_', '.', ' ']).collect();
    let tail = parts.last().copied().unwrap_or_default();
    let pair = parts.len().checked_sub(2).and_then(|i| parts.get(i..)).map(|p| p.join("_")).unwrap_or_default();
    WORDS.contains(&tail)
        || WORDS.contains(&pair.as_str())
        || (tail == "key" && parts.len() > 1 && !matches!(parts[parts.len() - 2], "public" | "sort" | "primary"))
        || ["apikey", "token", "password", "secret"].iter().any(|w| tail.ends_with(w))
}

/// Values that are no credential whatever their name: nothing, switches, the name of a scheme, small numbers, paths, and addresses without a
/// password.
fn harmless(value: &str) -> bool {
    let v = value.trim();
    v.is_empty()
        || matches!(
            v.to_ascii_lowercase().as_str(),
            "true" | "false" | "none" | "null" | "yes" | "no" | "on" | "off" | "bearer" | "basic"
        )
        || (v.len() <= 3 && v.bytes().all(|b| b.is_ascii_digit()))
        || ["/", "./", "../", "~/", "http://", "https://"].iter().any(|p| v.starts_with(p))
        // A path of Windows.
        || matches!(v.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic())
}

/// Long, without structure, of mixed kinds: 32 or more letters and digits with at least 4 bits per character.
fn random(value: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'+' | b'=');
    if value.len() < 32 || !value.bytes().all(plain) {
        return false;
    }
    let kind = |f: fn(&u8) -> bool| value.as_bytes().iter().any(f);
    kind(u8::is_ascii_digit) && kind(u8::is_ascii_uppercase) && kind(u8::is_ascii_lowercase) && entropy(value) >= 4.0
}

fn entropy(value: &str) -> f64 {
    let mut counts = [0u32; 256];
    value.bytes().for_each(|b| counts[usize::from(b)] += 1);
    let n = value.len() as f64;
    counts.iter().filter(|c| **c > 0).map(|c| f64::from(*c) / n).map(|p| -p * libm::log2(p)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_values() {
        for (name, value, want) in [
            ("GITHUB_TOKEN", "ghp_FAKE0000FAKE0000FAKE0000", true),
            ("GITHUB_TOKEN", "${GITHUB_TOKEN}", false),
            ("GITHUB_TOKEN", "${env:GITHUB_TOKEN}", false),
            ("GITHUB_TOKEN", "Bearer ${env:T}", false),
            ("DB_PASSWORD", "hunter2", true),
            ("DB_PASSWORD", "", false),
            ("DB_PASSWORD", "${P:-hunter2}", true),
            ("X", "ghp_FAKE0000FAKE0000FAKE0000", true),
            ("DATABASE_URL", "postgres://u:pw@h/db", true),
            ("DATABASE_URL", "${U:-postgres://localhost/db}", false),
            ("DATABASE_URL", "${U:-postgres://u:pw@localhost/db}", true),
            ("GOOGLE_APPLICATION_CREDENTIALS", "/home/u/key.json", false),
            ("GOOGLE_APPLICATION_CREDENTIALS", r"C:\Users\u\key.json", false),
            ("AUTH_MODE", "oauth", false),
            ("AUTHOR", "somebody", false),
            ("TOKENIZER", "cl100k", false),
            ("PUBLIC_KEY", "abc", false),
            ("OPENAI_API_KEY", "whatever", true),
            ("MY_KEY", "whatever", true),
            ("SESSION", "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF", true),
            ("PROJECT", "0b5c2f7e-93d4-4a6e-8f0e-3a0f9b8c7d6e", false),
            ("LOG_LEVEL", "debug", false),
            ("GITHUB_TOKEN", "firedoor-secret:cursor/user/github/GITHUB_TOKEN", false),
            ("NODE_OPTIONS", "--max-old-space-size=4096", false),
        ] {
            assert_eq!(in_clear(Interpolation::ShellDefault, Some(name), value), want, "{name}={value}");
        }
    }

    #[test]
    fn what_a_reference_is_depends_on_the_client() {
        use Interpolation::{Editor, None, Shell, ShellDefault, ShellNames};
        for (rules, value, want) in [
            (Shell, "$MY_TOKEN", false),
            (Shell, "MY_TOKEN", true),
            (ShellNames, "MY_TOKEN", false),
            (ShellNames, "$MY_TOKEN", false),
            (ShellNames, "hunter2", true),
            (ShellNames, "ghp_FAKEfakeFAKEfakeFAKE", true),
            (Shell, "${MY_TOKEN:-hunter2}", true),
            (ShellDefault, "$MY_TOKEN", true),
            (Editor, "$MY_TOKEN", true),
            (Editor, "${input:token}", false),
            (None, "$MY_TOKEN", true),
            (None, "${MY_TOKEN}", true),
        ] {
            assert_eq!(in_clear(rules, Some("MY_TOKEN"), value), want, "{rules:?} {value}");
        }
    }

    #[test]
    fn arguments() {
        for (args, want) in [
            (&["-y", "@x/server"][..], None),
            (&["-y", "x", "--api-key", "abcdef"], Some(3)),
            (&["--api-key=abcdef"], Some(0)),
            (&["--api-key=${KEY}"], None),
            (&["--token", "${T}"], None),
            (&["--token", "--verbose"], None),
            (&["--header", "Authorization: Bearer abcdef"], Some(1)),
            (&["--header", "Authorization: Bearer ${T}"], None),
            (&["--header", "Authorization:${AUTH}"], None),
            (&["postgresql://u:pw@localhost/db"], Some(0)),
            (&["--project-ref=${env:SB_REF}"], None),
            (&["sk-FAKE0000FAKE0000FAKE"], Some(0)),
            (&["task-master-ai", "sk-learn"], None),
        ] {
            let found = (0..args.len()).find(|at| arg_in_clear(Interpolation::ShellDefault, args, *at));
            assert_eq!(found, want, "{args:?}");
        }
    }
}

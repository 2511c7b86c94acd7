//! What a call names: where it goes, whom, and what else could be meant by a text.

use std::net::Ipv4Addr;

use firedoor_model::wire::Leaves;

use crate::{
    Call,
    hosts::{hosts, schemes},
    privacy::SourceWords,
    view,
};

/// Most of each kind that are compared. A call with more may follow any text; of numbers there may be more, in a table.
pub(super) const MAX_NAMED: usize = 256;
/// Longest value that names something, in bytes; what is longer is what is sent. Longest of an address, and most hosts above one.
const NAME: usize = 64;
const ADDRESS: usize = 253;
const PARENTS: usize = 4;
/// Fewest characters of a name, of one where a member says that it is one, of one in small letters, and of a number.
const SHORT: usize = 3;
const RECIPIENT: usize = 2;
const SMALL: usize = 5;
const NUMBER: usize = 8;
/// Longest value that carries nothing by itself, most that such values carry together, longest URL, longest part of its path, and most digits of one.
const NOTHING: usize = 24;
const LITTLE: usize = 28;
const PLAIN_URL: usize = 120;
const PART: usize = 48;
const DIGITS: usize = 6;

#[derive(Debug, Default)]
pub(super) struct Named {
    /// Hosts and mailboxes that it goes to by the names of their members, and those that stand elsewhere.
    pub(super) goes: Vec<String>,
    held: Vec<String>,
    /// The hosts above those that it goes to.
    pub(super) parents: Vec<String>,
    /// Other short values.
    pub(super) values: Vec<String>,
    /// Names of accounts, by those of their members, and accounts at services that are no host (`name@bank`).
    pub(super) users: Vec<String>,
    /// Accounts, telephones and the like: letters and digits alone.
    pub(super) numbers: Vec<String>,
    /// Those of them that are a value as a whole and of somebody by their member or form, and IBANs within one.
    pub(super) accounts: Vec<String>,
    /// Parts of paths that may be data, and the addresses that hold them.
    pub(super) segments: Vec<String>,
    pub(super) pages: Vec<String>,
    /// It says more than where it goes.
    pub(super) carries: bool,
    /// The tool only looks at something, and is told which by identifiers alone.
    pub(super) little: bool,
    /// A value says that everybody may read it.
    pub(super) everybody: bool,
    /// There is more, or what cannot be read here.
    pub(super) more: bool,
    /// Bytes of values that are no address.
    said: usize,
}

impl Named {
    pub(super) fn of(call: &Call<'_>, words: &SourceWords) -> Self {
        // A way that is opened carries what comes after.
        let mut out = Self { carries: words.opens_a_way(call.subject), ..Self::default() };
        let (mut member, mut goes, mut identified) = (String::new(), false, true);
        for leaf in Leaves::of(call.arguments.unwrap_or_default()) {
            if out.more {
                break;
            }
            if leaf.key {
                goes = words.says_where(&leaf.text) || words.says_whom(&leaf.text);
                member.clear();
                member.push_str(&leaf.text);
                out.addresses(&leaf.text, false);
                continue;
            }
            out.more |= words.holds_file(&member, &leaf.text).is_some();
            let user = words.says_account(&member) || goes && leaf.text.contains('@');
            if user && leaf.text.len() <= NAME && out.users.len() < MAX_NAMED {
                out.users.push(view::normalised(&leaf.text));
            }
            out.value(&leaf.text, goes, words);
            identified &= identifies(&leaf.text, words);
        }
        out.little = identified && !out.carries && !out.more && words.looks(call.subject);
        out
    }

    /// All hosts and mailboxes.
    pub(super) fn all(&self) -> impl Iterator<Item = &String> {
        self.goes.iter().chain(&self.held)
    }

    fn addresses(&mut self, text: &str, goes: bool) {
        let bare = || bare_host(text).filter(|_| goes);
        for address in addresses(text).chain(bare()) {
            let whole = if goes { &mut self.goes } else { &mut self.held };
            if whole.contains(&address) {
                continue;
            }
            if whole.len() >= MAX_NAMED {
                self.more = true;
                return;
            }
            if !address.contains('@') && address.contains(|c: char| c.is_ascii_alphabetic()) {
                let above = address.match_indices('.').filter_map(|(at, _)| address.get(at + 1..));
                self.parents.extend(above.filter(|host| host.contains('.')).take(PARENTS).map(str::to_owned));
            }
            whole.push(address);
        }
    }

    fn value(&mut self, text: &str, goes: bool, words: &SourceWords) {
        let url = schemes(text).next().is_some();
        self.carries |= if url {
            text.len() > PLAIN_URL || text.contains(|c: char| c.is_whitespace() || matches!(c, '?' | '#'))
        } else {
            self.said += text.len();
            text.len() > NOTHING || self.said > LITTLE
        };
        self.addresses(text, goes);
        if url && text.len() <= PLAIN_URL {
            let parts = schemes(text).filter_map(|at| text.get(at..)).flat_map(|rest| rest.split('/').skip(1));
            let data = |part: &&str| {
                part.contains(['%', '@', '='])
                    || part.len() > PART
                    || part.bytes().filter(u8::is_ascii_digit).count() > DIGITS
            };
            let before = self.segments.len();
            self.segments.extend(parts.filter(data).map(view::normalised));
            if self.segments.len() > before {
                self.pages.push(view::normalised(text));
            }
            self.more |= self.segments.len() > MAX_NAMED;
        }
        let short = text.len() <= NAME;
        let normal = if short { view::normalised(text) } else { String::new() };
        let value = normal.trim_matches(|c: char| c.is_whitespace() || matches!(c, '#' | '@' | '+'));
        self.everybody |= words.is_everybody(value);
        let named = goes && value.chars().count() >= RECIPIENT || telling(text.trim()) && !words.is_common(value);
        if !url && short && named && !is_date(text) {
            self.more |= self.values.len() >= MAX_NAMED;
            self.values.push(value.to_owned());
        }
        let number = |token: &&str| token.len() >= NUMBER && token.bytes().filter(u8::is_ascii_digit).count() > 2;
        let room = MAX_NAMED.saturating_sub(self.numbers.len());
        let whole = short.then(|| packed(&normal)).filter(|whole| number(&whole.as_str()) && !is_date(text));
        let account = goes && !url || is_account(&normal);
        self.accounts.extend(whole.clone().filter(|_| account));
        let within =
            text.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_lowercase).filter(|token| is_iban(token));
        self.accounts.extend(within.take(MAX_NAMED));
        self.more |= self.accounts.len() > MAX_NAMED;
        let tokens = text.split(|c: char| !c.is_alphanumeric()).filter(number).map(str::to_lowercase);
        self.numbers.extend(whole.into_iter().chain(tokens).take(room));
    }
}

/// Whether a value may be an identifier, or says how something is to be looked at: names and words that it could carry away are none.
fn identifies(value: &str, words: &SourceWords) -> bool {
    let digit = value.bytes().any(|b| b.is_ascii_digit()) && !value.contains(char::is_whitespace);
    digit || value.len() < SMALL || words.is_common(&view::normalised(value))
}

/// Whether a value begins with a date, which many texts name (RFC 3339).
fn is_date(value: &str) -> bool {
    let (year, rest) = value.split_at_checked(4).unwrap_or_default();
    year.bytes().all(|b| b.is_ascii_digit())
        && (year.starts_with("19") || year.starts_with("20"))
        && rest.starts_with(['-', '/'])
}

/// Characters of an IBAN before those that are digits in nearly all countries: the country, two check digits, the bank.
const BANK: usize = 8;

/// Whether letters and digits have the form of an IBAN (ISO 13616: a country, two check digits, an account). Digests have letters up to their end.
fn is_iban(value: &str) -> bool {
    let bytes = value.as_bytes();
    (15..=34).contains(&bytes.len())
        && bytes.iter().take(2).all(u8::is_ascii_lowercase)
        && bytes.iter().skip(2).take(2).all(u8::is_ascii_digit)
        && bytes.iter().skip(BANK).all(u8::is_ascii_digit)
}

/// Whether a value is an IBAN, its check digits among it (ISO 7064, MOD 97-10), with blanks or hyphens in it.
pub(crate) fn is_checked_iban(value: &str) -> bool {
    let value: String = value.chars().filter(|c| !matches!(c, ' ' | '-')).collect();
    let (head, tail) = value.split_at_checked(4).unwrap_or_default();
    let digits = tail.chars().chain(head.chars()).map(|c| c.to_digit(36));
    let rest = |rest: u32, digit: u32| (rest * if digit > 9 { 100 } else { 10 } + digit) % 97;
    let checked = || digits.into_iter().try_fold(0, |sum, digit| Some(rest(sum, digit?)));
    is_iban(&value.to_ascii_lowercase()) && checked() == Some(1)
}

/// The same, or of a telephone's number.
fn is_account(value: &str) -> bool {
    let phone = value.starts_with(['+', '0']) && value.contains([' ', '-', '(']) || value.starts_with('+');
    let sorts = |c: char| c.is_ascii_digit() || matches!(c, '+' | ' ' | '-' | '(' | ')' | '/');
    is_iban(value) || phone && value.chars().all(sorts)
}

/// Whether a value may name somebody or something.
fn telling(value: &str) -> bool {
    let count = value.chars().count();
    let digits = value.chars().any(|c| c.is_ascii_digit());
    let mut letters = value.chars().filter(|c| c.is_alphabetic());
    let name = letters.next().is_some_and(char::is_uppercase) && letters.any(char::is_lowercase);
    // In scripts without small letters a word is short.
    let other = value.chars().any(|c| c >= '\u{2E80}') && count > 1;
    count >= SMALL || other || count >= SHORT && (digits || name)
}

/// The words of a text, with what is stuck to them, that may name a host or a mailbox.
pub(super) fn naming(text: &str) -> impl Iterator<Item = &str> {
    let (bytes, mut read) = (text.as_bytes(), 0);
    memchr::memchr2_iter(b'@', b':', bytes).filter_map(move |at| {
        let names = bytes.get(at) == Some(&b'@') || bytes.get(at..at + 3) == Some(b"://");
        if at < read || !names {
            return None;
        }
        let (before, behind) = (bytes.get(read..at)?, bytes.get(at..)?);
        let from = read + before.iter().rposition(u8::is_ascii_whitespace).map_or(0, |at| at + 1);
        read = at + behind.iter().position(u8::is_ascii_whitespace).unwrap_or(behind.len());
        text.get(from..read)
    })
}

/// The hosts and mailboxes that a text names, normalised.
pub(super) fn addresses(text: &str) -> impl Iterator<Item = String> {
    let mailbox = |word: &&str| {
        let (name, host) = word.split_once('@').unwrap_or_default();
        // A package has its version there (`sass@1.77`).
        let last = host.rsplit_once('.').map(|(_, last)| last);
        let host = last.is_some_and(|last| last.contains(char::is_alphabetic)) || host.parse::<Ipv4Addr>().is_ok();
        !name.is_empty() && host && word.len() <= ADDRESS
    };
    let ends = |c: char| !(c.is_alphanumeric() || matches!(c, '.' | '_' | '%' | '+' | '-' | '@'));
    let mail = naming(text).flat_map(move |word| word.split(ends));
    let mail = mail.map(|word| word.trim_matches(['.', '-'])).filter(mailbox);
    let of_host = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '%' | ':');
    let hosts = hosts(text).map(move |host| host.split(|c| !of_host(c)).next().unwrap_or_default());
    hosts.filter(|host| !host.is_empty() && host.len() <= ADDRESS).chain(mail).map(plain)
}

/// The host of an address without its scheme.
fn bare_host(text: &str) -> Option<String> {
    let rest = text.trim_start_matches('/').trim_start_matches("https:/").trim_start_matches("http:/");
    let host = rest.split(['/', '?', '#', ':']).next()?;
    let known = host.contains('.')
        && host.len() <= ADDRESS
        && host.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-'));
    (known && schemes(text).next().is_none()).then(|| plain(host))
}

fn plain(address: &str) -> String {
    view::normalised(address.trim_end_matches('.'))
}

/// The letters and digits of a text.
pub(super) fn packed(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_have_check_digits() {
        for (value, form, checked) in [
            ("HU93 1160 0006 0000 0000 1234 5676", true, true),
            ("DE89370400440532013000", true, true),
            ("GB29 NWBK 6016 1331 9268 19", true, true),
            ("DE88370400440532013000", true, false),
            ("ab12 severe depression since march", false, false),
            ("ab12cdef0a1b2c3d4e5f60718293a4b5", false, false),
        ] {
            let plain = packed(&view::normalised(value));
            assert_eq!((is_iban(&plain), is_checked_iban(value)), (form, checked), "{value}");
        }
    }

    #[test]
    fn mailboxes_have_hosts() {
        for (text, want) in
            [("npm i sass@1.77", 0), ("ssh root@203.0.113.9", 1), ("to ana@firm.example", 1), ("vite@latest", 0)]
        {
            assert_eq!(addresses(text).count(), want, "{text}");
        }
    }

    proptest::proptest! {
        /// All that is told word by word.
        #[test]
        fn word_by_word(text in "(?:[a-zé]{1,3}|@|\\.|://|:|\\n| |-|/){0,80}") {
            let words = naming(&text).flat_map(|word| addresses(word).collect::<Vec<_>>());
            let (mut words, mut all): (Vec<String>, Vec<String>) = (words.collect(), addresses(&text).collect());
            words.sort_unstable();
            all.sort_unstable();
            proptest::prop_assert_eq!(words, all);
        }

        #[test]
        fn total(text in "(?:[a-zé漢]{1,3}|@|\\.|://|[0-9]{3}| |-|/){0,80}") {
            for address in addresses(&text) {
                proptest::prop_assert!(address.len() <= 4 * ADDRESS);
            }
            bare_host(&text);
            telling(&text);
        }
    }
}

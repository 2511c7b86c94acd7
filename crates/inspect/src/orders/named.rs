//! What a call names: where it goes, whom, and what else could be meant by a text.

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
    /// Names of accounts, by those of their members.
    pub(super) users: Vec<String>,
    /// Accounts, telephones and the like: letters and digits alone.
    pub(super) numbers: Vec<String>,
    /// Those of them that are a value as a whole, and of somebody by their member or form.
    pub(super) accounts: Vec<String>,
    /// Parts of paths that may be data.
    pub(super) segments: Vec<String>,
    /// It says more than where it goes.
    pub(super) carries: bool,
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
        let (mut member, mut goes) = (String::new(), false);
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
            if words.says_account(&member) && leaf.text.len() <= NAME && out.users.len() < MAX_NAMED {
                out.users.push(view::normalised(&leaf.text));
            }
            out.value(&leaf.text, goes, words);
        }
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
            self.segments.extend(parts.filter(data).map(view::normalised));
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
        let account = goes || is_account(&normal);
        self.accounts.extend(whole.clone().filter(|_| account));
        let within =
            text.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_lowercase).filter(|token| is_iban(token));
        self.accounts.extend(within.take(MAX_NAMED));
        self.more |= self.accounts.len() > MAX_NAMED;
        let tokens = text.split(|c: char| !c.is_alphanumeric()).filter(number).map(str::to_lowercase);
        self.numbers.extend(whole.into_iter().chain(tokens).take(room));
    }
}

/// Whether a value begins with a date, which many texts name (RFC 3339).
fn is_date(value: &str) -> bool {
    let (year, rest) = value.split_at_checked(4).unwrap_or_default();
    year.bytes().all(|b| b.is_ascii_digit())
        && (year.starts_with("19") || year.starts_with("20"))
        && rest.starts_with(['-', '/'])
}

/// Whether a normalised value has the form of an IBAN (ISO 13616: a country, two check digits, an account).
pub(crate) fn is_iban(value: &str) -> bool {
    let bytes = value.as_bytes();
    (15..=34).contains(&bytes.len())
        && bytes.iter().take(2).all(u8::is_ascii_lowercase)
        && bytes.get(2..4).is_some_and(|two| two.iter().all(u8::is_ascii_digit))
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

/// The hosts and mailboxes that a text names, normalised.
pub(super) fn addresses(text: &str) -> impl Iterator<Item = String> {
    let mailbox = |word: &&str| {
        let (name, host) = word.split_once('@').unwrap_or_default();
        // A package has its version there (`sass@1.77`).
        let last = host.rsplit_once('.').map(|(_, last)| last);
        !name.is_empty() && last.is_some_and(|last| last.contains(char::is_alphabetic)) && word.len() <= ADDRESS
    };
    let ends = |c: char| !(c.is_alphanumeric() || matches!(c, '.' | '_' | '%' | '+' | '-' | '@'));
    let mail = memchr::memchr(b'@', text.as_bytes()).map(|_| text.split(ends));
    let mail = mail.into_iter().flatten().map(|word| word.trim_matches(['.', '-'])).filter(mailbox);
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
pub(crate) fn packed(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
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

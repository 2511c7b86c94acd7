//! The table of rules as it stands in `profiles/seccomp/linux.toml`, which also explains its fields: read and checked when
//! this crate is built (`build.rs`), and written as the Rust that `table.rs` includes.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use serde::Deserialize;

/// The table is not what it must be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    #[error("it is not valid TOML of the expected form: {0}")]
    Form(#[from] toml::de::Error),
    #[error("a rule names {0:?}, which is not in [numbers]")]
    NoNumber(String),
    #[error("[numbers] lists {0:?}, which no rule names")]
    Unused(String),
    #[error("{0:?} and {1:?} have the same number")]
    SameNumber(String, String),
    #[error("a rule for {0:?} tests argument {1}, but system calls have arguments 0 to 5")]
    Argument(String, u8),
    #[error("a rule for {0:?} compares with {1:#x}, which lies outside its mask {2:#x} and so is never found")]
    OutsideMask(String, u32, u32),
    #[error("a rule for {0:?} has an empty list")]
    EmptyList(String),
}

/// The variants of `Reach` in `table.rs`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reach {
    None,
    Proxy,
    Listed,
    ListedMusl,
}

/// Number of a call on one architecture.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
enum Number {
    Is(u32),
    Lacks(Absent),
}

/// The word `absent`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Absent {
    /// A decision, not an oversight.
    Absent,
}

impl Number {
    fn known(self) -> Option<u32> {
        match self {
            Self::Is(number) => Some(number),
            Self::Lacks(Absent::Absent) => None,
        }
    }
}

/// Numbers of one call. Both architectures are required.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Numbers {
    x86_64: Number,
    aarch64: Number,
}

/// The variants of `Action` in `table.rs`.
#[derive(Clone, Copy, Debug, Deserialize)]
enum Action {
    #[serde(rename = "allow")]
    Allow,
    #[serde(rename = "notify")]
    Notify,
    #[serde(rename = "log")]
    Log,
    #[serde(rename = "pretend")]
    Pretend,
    #[serde(rename = "EPERM")]
    NotPermitted,
    #[serde(rename = "EACCES")]
    AccessDenied,
    #[serde(rename = "ENOSYS")]
    NoSuchCall,
    #[serde(rename = "EOPNOTSUPP")]
    NotSupported,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Condition {
    arg: u8,
    #[serde(default = "all_bits")]
    mask: u32,
    #[serde(flatten)]
    test: Test,
}

fn all_bits() -> u32 {
    u32::MAX
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Test {
    Is(Vec<u32>),
    Not(Vec<u32>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    calls: Vec<String>,
    network: Option<Reach>,
    #[serde(default)]
    trees: bool,
    #[serde(default)]
    no_terminal: bool,
    landlock_before: Option<u32>,
    #[serde(default)]
    when: Vec<Condition>,
    action: Action,
    /// For readers of the file; required so that no row is without one.
    #[serde(rename = "reason")]
    _reason: String,
}

/// The whole table, checked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Source {
    numbers: BTreeMap<String, Numbers>,
    #[serde(rename = "rule")]
    rules: Vec<Rule>,
}

impl Source {
    /// Reads and checks a table.
    pub(crate) fn parse(text: &str) -> Result<Self, SourceError> {
        let table: Self = toml::from_str(text)?;
        table.check_numbers()?;
        for rule in &table.rules {
            for name in &rule.calls {
                for condition in &rule.when {
                    condition.check(name)?;
                }
            }
        }
        Ok(table)
    }

    fn check_numbers(&self) -> Result<(), SourceError> {
        let named: BTreeSet<&String> = self.rules.iter().flat_map(|r| &r.calls).collect();
        if let Some(name) = named.iter().find(|name| !self.numbers.contains_key(**name)) {
            return Err(SourceError::NoNumber((*name).clone()));
        }
        if let Some(name) = self.numbers.keys().find(|name| !named.contains(name)) {
            return Err(SourceError::Unused(name.clone()));
        }
        for of in [|n: &Numbers| n.x86_64, |n: &Numbers| n.aarch64] {
            let mut seen: BTreeMap<u32, &String> = BTreeMap::new();
            for (name, numbers) in &self.numbers {
                if let Some(number) = of(numbers).known()
                    && let Some(other) = seen.insert(number, name)
                {
                    return Err(SourceError::SameNumber(other.clone(), name.clone()));
                }
            }
        }
        Ok(())
    }

    /// An expression for the calls, each with its rules in the order of the file.
    pub(crate) fn to_rust(&self) -> String {
        let mut out = String::from("&[\n");
        for (name, numbers) in &self.numbers {
            let (x86_64, aarch64) = (numbers.x86_64.known(), numbers.aarch64.known());
            let rules = self.rules.iter().filter(|r| r.calls.contains(name)).map(Rule::to_rust);
            let rules = rules.collect::<String>();
            // Writing to a string does not fail.
            let _ =
                writeln!(out, "({name:?}, Call {{ x86_64: {x86_64:?}, aarch64: {aarch64:?}, rules: &[{rules}] }}),");
        }
        out + "]\n"
    }
}

impl Rule {
    fn to_rust(&self) -> String {
        let network = self.network.map_or_else(|| "None".to_owned(), |n| format!("Some(Reach::{n:?})"));
        let when: String = self.when.iter().map(Condition::to_rust).collect();
        let Self { trees, no_terminal, landlock_before, action, .. } = self;
        format!(
            "Rule {{ network: {network}, trees: {trees}, no_terminal: {no_terminal}, \
             landlock_before: {landlock_before:?}, when: &[{when}], action: Action::{action:?} }}, "
        )
    }
}

impl Condition {
    fn values(&self) -> &[u32] {
        match &self.test {
            Test::Is(values) | Test::Not(values) => values,
        }
    }

    fn check(&self, call: &str) -> Result<(), SourceError> {
        if self.arg > 5 {
            return Err(SourceError::Argument(call.to_owned(), self.arg));
        }
        if self.values().is_empty() {
            return Err(SourceError::EmptyList(call.to_owned()));
        }
        match self.values().iter().find(|v| **v & !self.mask != 0) {
            Some(value) => Err(SourceError::OutsideMask(call.to_owned(), *value, self.mask)),
            None => Ok(()),
        }
    }

    fn to_rust(&self) -> String {
        let test = match &self.test {
            Test::Is(_) => "Is",
            Test::Not(_) => "Not",
        };
        format!("Condition {{ arg: {}, mask: {}, test: Test::{test}(&{:?}) }}, ", self.arg, self.mask, self.values())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Source::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn faults_are_refused() {
        let rule = |rest: &str| {
            format!(
                "[numbers]\na = {{ x86_64 = 1, aarch64 = \"absent\" }}\n[[rule]]\ncalls = [\"a\"]\naction = \"EPERM\"\nreason = \"r\"\n{rest}"
            )
        };
        assert!(Source::parse(&rule("")).is_ok());
        for (text, want) in [
            (rule("[[rule]]\ncalls = [\"b\"]\naction = \"EPERM\"\nreason = \"r\""), "\"b\", which is not in [numbers]"),
            (rule("when = [{ arg = 6, is = [1] }]"), "argument 6"),
            (rule("when = [{ arg = 0, is = [] }]"), "empty list"),
            (rule("when = [{ arg = 0, mask = 0xf, is = [0x10] }]"), "outside its mask"),
            (rule("when = [{ arg = 0, is = [1], not = [2] }]"), "TOML"),
            (rule("when = [{ arg = 0, equals = [1] }]"), "TOML"),
            (rule("network = \"all\""), "TOML"),
            (rule("").replace("EPERM", "EWHAT"), "TOML"),
            (rule("").replace("reason", "because"), "TOML"),
            (rule("").replace(", aarch64 = \"absent\"", ""), "TOML"),
            (rule("").replace("\"absent\"", "\"unknown\""), "TOML"),
            (rule("").replace("[[rule]]", "b = { x86_64 = 2, aarch64 = 2 }\n[[rule]]"), "no rule names"),
            (
                rule("")
                    .replace("[[rule]]", "b = { x86_64 = 1, aarch64 = 2 }\n[[rule]]")
                    .replace("[\"a\"]", "[\"a\", \"b\"]"),
                "same number",
            ),
        ] {
            let got = refusal(&text);
            assert!(got.contains(want), "{text}\n{got}");
        }
    }

    #[test]
    fn rules_keep_their_order_and_all_their_words() {
        let table = Source::parse(
            "[numbers]\na = { x86_64 = 1, aarch64 = \"absent\" }\n\
             [[rule]]\ncalls = [\"a\"]\nnetwork = \"listed_musl\"\ntrees = true\nno_terminal = true\nlandlock_before = 3\n\
             when = [{ arg = 2, mask = 6, not = [2, 4] }, { arg = 0, is = [7] }]\naction = \"notify\"\nreason = \"r\"\n\
             [[rule]]\ncalls = [\"a\"]\naction = \"EPERM\"\nreason = \"r\"\n",
        );
        let want = "&[\n(\"a\", Call { x86_64: Some(1), aarch64: None, rules: &[\
            Rule { network: Some(Reach::ListedMusl), trees: true, no_terminal: true, landlock_before: Some(3), when: &[\
            Condition { arg: 2, mask: 6, test: Test::Not(&[2, 4]) }, \
            Condition { arg: 0, mask: 4294967295, test: Test::Is(&[7]) }, ], action: Action::Notify }, \
            Rule { network: None, trees: false, no_terminal: false, landlock_before: None, when: &[], action: Action::NotPermitted }, ] }),\n]\n";
        assert_eq!(table.unwrap().to_rust(), want);
    }
}

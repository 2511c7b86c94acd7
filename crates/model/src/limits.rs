//! Resources that one server, and everything that it starts, may use.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// What is not given here is not limited. In profiles: `[limits]`, each key by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Memory of all processes together.
    pub memory: Option<Size>,
    /// Processes and threads together, as the kernel counts them.
    pub processes: Option<Count>,
    /// Open files of each process.
    pub files: Option<Count>,
    /// The largest file that may be written.
    pub file_size: Option<Size>,
    /// Processor time, in percent of one processor. In force in a control group only.
    pub cpu: Option<Count>,
    /// How much of what it may reach is too much.
    pub rates: Rates,
}

/// How often a server whose connections are judged may do what it is allowed to do. In profiles: `[limits.rates]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rates {
    /// Look-ups of names that leave this machine, per minute.
    pub look_ups: Option<Count>,
    /// Connections to one host and port, per minute.
    pub connections_to_one: Option<Count>,
    /// All connections, per minute.
    pub connections: Option<Count>,
    /// Bytes of names below one wildcard that were never looked up before, per hour.
    pub new_names: Option<Count>,
    /// Bytes that may be sent to one host and port, per hour. They can be counted only where they pass: with this, connections
    /// to hosts go through the guardian, and datagrams are sent only with their destination beside them.
    pub sent_to_one: Option<Size>,
}

impl Rates {
    fn over(self, base: Self) -> Self {
        Self {
            look_ups: self.look_ups.or(base.look_ups),
            connections_to_one: self.connections_to_one.or(base.connections_to_one),
            connections: self.connections.or(base.connections),
            new_names: self.new_names.or(base.new_names),
            sent_to_one: self.sent_to_one.or(base.sent_to_one),
        }
    }
}

impl Limits {
    /// These limits, and `base` where they say nothing.
    pub fn over(self, base: Self) -> Self {
        Self {
            memory: self.memory.or(base.memory),
            processes: self.processes.or(base.processes),
            files: self.files.or(base.files),
            file_size: self.file_size.or(base.file_size),
            cpu: self.cpu.or(base.cpu),
            rates: self.rates.over(base.rates),
        }
    }
}

/// A number of bytes: `512MiB`, `4GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Size(u64);

/// A number from 1 to a million.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub struct Count(u32);

/// A text or a number that is no limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// No size.
    #[error("{0:?} is no size: write a whole number and KiB, MiB, GiB or TiB, from 1MiB to 1024TiB")]
    Size(String),
    /// No count.
    #[error("{0} is out of bounds: from 1 to 1000000")]
    Count(i64),
}

const UNITS: [(&str, u64); 4] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];

impl Size {
    const MIN: u64 = 1 << 20;
    const MAX: u64 = 1 << 50;

    /// In bytes.
    pub fn bytes(self) -> u64 {
        self.0
    }
}

impl Count {
    const MAX: u32 = 1_000_000;

    /// As a number.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl FromStr for Size {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let bytes = UNITS.iter().find_map(|(unit, factor)| {
            let digits = text.strip_suffix(unit)?.trim_end_matches(' ');
            let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            digits.parse::<u64>().ok().filter(|_| plain)?.checked_mul(*factor)
        });
        let fits = bytes.filter(|bytes| (Self::MIN..=Self::MAX).contains(bytes));
        fits.map(Self).ok_or_else(|| LimitError::Size(text.chars().take(40).collect()))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = UNITS.iter().rev().find(|(_, factor)| self.0.is_multiple_of(*factor));
        match whole {
            Some((unit, factor)) => write!(f, "{}{unit}", self.0 / factor),
            // Not from a text.
            None => write!(f, "{}KiB", self.0.div_ceil(1 << 10)),
        }
    }
}

impl TryFrom<String> for Size {
    type Error = LimitError;

    fn try_from(text: String) -> Result<Self, LimitError> {
        text.parse()
    }
}

impl From<Size> for String {
    fn from(size: Size) -> Self {
        size.to_string()
    }
}

impl TryFrom<i64> for Count {
    type Error = LimitError;

    fn try_from(number: i64) -> Result<Self, LimitError> {
        let fits = u32::try_from(number).ok().filter(|n| (1..=Self::MAX).contains(n));
        fits.map(Self).ok_or(LimitError::Count(number))
    }
}

impl From<Count> for i64 {
    fn from(count: Count) -> Self {
        count.0.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_in_words() {
        for (text, want) in [
            ("4GiB", Some((4 << 30, "4GiB"))),
            ("512 MiB", Some((512 << 20, "512MiB"))),
            ("2048MiB", Some((2 << 30, "2GiB"))),
            ("1024KiB", Some((1 << 20, "1MiB"))),
            ("1024TiB", Some((1 << 50, "1024TiB"))),
            ("1025TiB", None),
            ("1023KiB", None),
            ("0GiB", None),
            ("-1GiB", None),
            ("+1GiB", None),
            ("1.5GiB", None),
            ("4GB", None),
            ("4", None),
            ("GiB", None),
            ("", None),
            ("99999999999999999999GiB", None),
            ("18014398509481985KiB", None),
        ] {
            let size = text.parse::<Size>().ok();
            assert_eq!(size.map(|s| (s.bytes(), s.to_string())), want.map(|(n, t)| (n, t.to_owned())), "{text:?}");
        }
    }

    #[test]
    fn counts_have_bounds() {
        for (number, want) in
            [(1, true), (1_000_000, true), (0, false), (-1, false), (1_000_001, false), (1 << 40, false)]
        {
            assert_eq!(Count::try_from(number).is_ok(), want, "{number}");
        }
    }

    #[test]
    fn what_is_not_said_comes_from_the_base() {
        let size = |text: &str| text.parse::<Size>().ok();
        let base = Limits { memory: size("4GiB"), files: Count::try_from(9).ok(), ..Limits::default() };
        let own = Limits { memory: size("1GiB"), cpu: Count::try_from(50).ok(), ..Limits::default() };
        assert_eq!(own.over(base), Limits { files: base.files, ..own });
        assert_eq!(Limits::default().over(base), base);
        let text = serde_json::to_string(&own).unwrap();
        assert_eq!(serde_json::from_str::<Limits>(&text).unwrap(), own);
        assert!(serde_json::from_str::<Limits>(r#"{"memmory":"4GiB"}"#).is_err());
        let rates = |text: &str| serde_json::from_str::<Limits>(text).unwrap();
        let (own, base) = (rates(r#"{"rates":{"look_ups":5}}"#), rates(r#"{"rates":{"look_ups":9,"new_names":7}}"#));
        assert_eq!(own.over(base), rates(r#"{"rates":{"look_ups":5,"new_names":7}}"#));
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(text in "[0-9]{1,8} ?[KMGT]iB") {
            if let Ok(size) = text.parse::<Size>() {
                prop_assert_eq!(size.to_string().parse::<Size>().unwrap(), size);
            }
        }
    }
}

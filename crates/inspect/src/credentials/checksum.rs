//! How formats of credentials check themselves.

use serde::Deserialize;

/// How a format checks itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum Checksum {
    #[serde(rename = "crc32-base62")]
    Crc32Base62,
    #[serde(rename = "luhn")]
    Luhn,
    #[serde(rename = "bip39-words")]
    Bip39Words,
    #[serde(rename = "groups-of-eleven")]
    GroupsOfEleven,
}

impl Checksum {
    pub(super) fn holds(self, secret: &[u8]) -> bool {
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
            // ISO/IEC 7812-1, annex B: from the end, every second digit counts twice, and of what that gives the digits do.
            Self::Luhn => {
                let digits = secret.iter().rev().filter(|b| b.is_ascii_digit()).map(|b| u32::from(b - b'0'));
                let twice = |digit: u32| digit * 2 / 10 + digit * 2 % 10;
                let sum: u32 = digits.enumerate().map(|(at, d)| if at % 2 == 1 { twice(d) } else { d }).sum();
                sum.is_multiple_of(10)
            }
            // BIP 39: words of its list. Other wallets take them, too, with checksums of their own, so only the words are looked at.
            Self::Bip39Words => {
                let Ok(text) = std::str::from_utf8(secret) else { return false };
                let list = bip39::Language::English.word_list();
                let mut words = text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty());
                words.all(|word| list.binary_search(&word).is_ok())
            }
            // Recovery passwords of BitLocker ([MS-FVE] and libbde's description): each group is a number of 16 bits times eleven.
            Self::GroupsOfEleven => {
                secret.split(|b| !b.is_ascii_digit()).filter(|group| !group.is_empty()).all(|group| {
                    let number =
                        group.iter().fold(0u32, |n, b| n.saturating_mul(10).saturating_add(u32::from(b - b'0')));
                    number.is_multiple_of(11) && number / 11 <= u32::from(u16::MAX)
                })
            }
        }
    }

    /// Whether what it does not hold for is none. One in ten numbers has the last digit that this one wants.
    pub(super) fn needed(self) -> bool {
        self != Self::Crc32Base62
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_checks_itself() {
        for (checksum, secret, want) in [
            (Checksum::Luhn, "4111 1111 1111 1111", true),
            (Checksum::Luhn, "4111 1111 1111 1112", false),
            (
                Checksum::Bip39Words,
                "orbit velvet canyon mimic harvest glue topic rescue woman lunar flavor siege",
                true,
            ),
            (Checksum::Bip39Words, "we went down the road and saw that nobody was there any more", false),
            (Checksum::GroupsOfEleven, "649781-051777-093753", true),
            (Checksum::GroupsOfEleven, "649782-051777-093753", false),
            (Checksum::GroupsOfEleven, "999999-999999", false),
        ] {
            assert_eq!(checksum.holds(secret.as_bytes()), want, "{secret}");
        }
    }

    proptest::proptest! {
        #[test]
        fn total(secret: Vec<u8>) {
            for checksum in [Checksum::Crc32Base62, Checksum::Luhn, Checksum::Bip39Words, Checksum::GroupsOfEleven] {
                checksum.holds(&secret);
            }
        }
    }
}

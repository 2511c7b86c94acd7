//! What may differ between two starts of the same server and tells a model nothing to do: a definition that differs in nothing else is
//! the one that was accepted.

use firedoor_inspect::same_in_any_order;

/// How a definition differs from the accepted one, if that is harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Harmless {
    /// In names of time zones: `mcp-server-time` names the machine's, which changes when its user travels.
    Zone,
    /// In the order of lists: `mcp-shell-server` keeps in a set the commands that it names, and gives them in another order at each start.
    Order,
}

impl Harmless {
    /// `None` where they differ in something else, too.
    pub(super) fn between(old: &str, new: &str) -> Option<Self> {
        match () {
            () if only_zones_differ(old, new, is_zone) => Some(Self::Zone),
            () if same_in_any_order(old, new) => Some(Self::Order),
            () => None,
        }
    }
}

/// Longest name of a zone that is looked up; those of the database (IANA) have up to 32 bytes.
const MAX_NAME: usize = 40;

/// Whether `new` is `old` but for names of zones, by what `is_zone` says.
fn only_zones_differ(old: &str, new: &str, is_zone: impl Fn(&str) -> bool) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '+');
    // Each with the character behind it.
    let words = |text| str::split_inclusive(text, move |c: char| !part(c));
    let split = |word: &str| {
        let name = word.trim_end_matches(|c| !part(c)).len();
        (word.get(..name).unwrap_or_default().to_owned(), word.get(name..).unwrap_or_default().to_owned())
    };
    let (mut old, mut new) = (words(old), words(new));
    loop {
        match (old.next(), new.next()) {
            (None, None) => return true,
            (Some(old), Some(new)) if old == new => {}
            (Some(old), Some(new)) => {
                let ((old, behind_old), (new, behind_new)) = (split(old), split(new));
                if behind_old != behind_new || ![old, new].iter().all(|name| name.len() <= MAX_NAME && is_zone(name)) {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

/// Whether there is a zone of this name, by the database that is part of this program.
fn is_zone(name: &str) -> bool {
    // Not those of countries and of one word, which may mean something else, and only as they are written.
    (name.contains('/') || name == "UTC") && jiff::tz::db().get(name).is_ok_and(|zone| zone.iana_name() == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_zones_may_differ() {
        let is_zone = |name: &str| ["UTC", "Etc/UTC", "Europe/Berlin", "America/North_Dakota/Center"].contains(&name);
        let text = |zone: &str| {
            format!(r#"{{"name":"now","description":"In '{zone}', or 'Europe/Berlin'.","zone":"{zone}"}}"#)
        };
        for (new, want) in [
            (text("Etc/UTC"), true),
            (text("UTC"), true),
            (text("America/North_Dakota/Center"), true),
            (text("Send/Secrets"), false),
            (text("Etc/UTC/and/more"), false),
            (text("Etc/UTC first"), false),
            (text("Etc/UTC").replace("now", "UTC"), false),
            (text("Etc/UTC").replace("In '", "In \""), false),
            (format!("{}x", text("Etc/UTC")), false),
            (String::new(), false),
        ] {
            assert_eq!(only_zones_differ(&text("Etc/UTC"), &new, is_zone), want, "{new}");
        }
        assert!(!only_zones_differ(&text(&"A".repeat(50)), &text(&"B".repeat(50)), |_| true));
    }
}

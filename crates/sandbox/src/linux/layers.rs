//! What each layer of Linux's sandbox adds, and the level that follows.

use crate::level::Level;

/// Landlock's first ABI with scopes for signals and abstract unix sockets (Linux 6.12).
pub(crate) const ABI_SCOPE: u32 = 6;
/// Landlock's first ABI with TCP rules (Linux 6.7).
pub(crate) const ABI_TCP: u32 = 4;
/// Landlock's first ABI that allows renames across directories (Linux 5.19).
pub(crate) const ABI_REFER: u32 = 2;

impl Level {
    /// The level of a machine or a server with these layers.
    pub(crate) fn of(landlock_abi: u32, filter: bool, connections_judged: bool) -> Self {
        match (landlock_abi, filter) {
            (0, _) | (_, false) => Self::Refused,
            (1..ABI_SCOPE, true) => Self::Partial,
            (_, true) if connections_judged => Self::Full,
            (_, true) => Self::Offline,
        }
    }
}

/// What a Landlock of this version leaves open, and which layer still covers it. `judged`: the guardian answers calls.
pub(crate) fn missing_from(abi: u32, judged: bool) -> Vec<String> {
    let mut out = Vec::new();
    if abi < ABI_REFER {
        out.push("Landlock 2 (Linux 5.19): renames across directories fail, which breaks npm".to_owned());
    }
    if abi < ABI_TCP {
        out.push("Landlock 4 (Linux 6.7): TCP is denied by the seccomp filter alone".to_owned());
    }
    if abi < ABI_SCOPE {
        out.push(if judged {
            "Landlock 6 (Linux 6.12): signals are judged by the guardian alone".to_owned()
        } else {
            "Landlock 6 (Linux 6.12): a server can send signals to the user's other processes".to_owned()
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_follows_from_the_layers() {
        for (abi, filter, judged, want) in [
            (0, true, true, Level::Refused),
            (7, false, true, Level::Refused),
            (1, true, true, Level::Partial),
            (5, true, false, Level::Partial),
            (6, true, false, Level::Offline),
            (7, true, true, Level::Full),
        ] {
            assert_eq!(Level::of(abi, filter, judged), want, "{abi} {filter} {judged}");
        }
        assert!(Level::Refused < Level::Partial && Level::Offline < Level::Full);
        assert_eq!((missing_from(1, true).len(), missing_from(6, false).len()), (3, 0));
        for (judged, want) in [(true, "judged by the guardian alone"), (false, "can send signals")] {
            assert!(missing_from(5, judged)[0].contains(want), "{judged}");
        }
    }
}

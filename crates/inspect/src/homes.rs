//! Credentials that are part of an address: a link to verify a mail, a presigned file. Whoever opens it gives it to nobody but the host
//! that made it.

use std::collections::HashMap;

use firedoor_model::Digest;

use crate::{Memory, fold, hosts};

/// Most that are known.
const MAX_HOMES: usize = 4096;

/// The host in whose addresses each has been seen; none of those that were seen elsewhere, too.
#[derive(Debug, Default)]
pub(crate) struct Homes(HashMap<Digest, Option<Box<str>>>);

impl Memory {
    /// Notes that a credential stands in an address of a host, or in none. To be said before it is remembered: what was known before has
    /// stood elsewhere.
    pub(crate) fn seen_at(&mut self, value: &[u8], host: Option<&str>) {
        let folded = fold::folded(value);
        let digest = Digest::of(&folded);
        let known = self.knows(&folded);
        let homes = &mut self.homes.0;
        if let Some(home) = homes.get_mut(&digest) {
            if home.as_deref() != host {
                *home = None;
            }
        } else if let Some(host) = host.filter(|_| !known && homes.len() < MAX_HOMES) {
            homes.insert(digest, Some(host.into()));
        }
    }

    /// Whether a text is an address of the host that this credential belongs to, and nothing else.
    pub(crate) fn is_home(&self, folded: &[u8], address: &str) -> bool {
        let Some(host) = hosts::of_address(address) else { return false };
        self.homes.0.get(&Digest::of(folded)).is_some_and(|home| home.as_deref() == Some(host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_elsewhere_too_has_no_home() {
        let token = b"WI4pKUIFNZgKLb1FaXHLeFiu";
        let folded = fold::folded(token);
        let address = |host: &str| format!("https://{host}/verify?token=WI4pKUIFNZgKLb1FaXHLeFiu");
        let check = |seen: &[Option<&str>], host: &str, want: bool| {
            let mut memory = Memory::default();
            seen.iter().for_each(|host| memory.seen_at(token, *host));
            assert_eq!(memory.is_home(&folded, &address(host)), want, "{seen:?} {host}");
        };
        check(&[Some("a.example")], "a.example", true);
        check(&[Some("a.example"), Some("a.example")], "a.example", true);
        check(&[Some("a.example")], "b.example", false);
        check(&[Some("a.example"), Some("b.example")], "b.example", false);
        check(&[Some("a.example"), None], "a.example", false);
        check(&[Some("a.example"), None, Some("a.example")], "a.example", false);
        check(&[None], "a.example", false);
        check(&[], "a.example", false);
        let mut memory = Memory::default();
        memory.seen_at(token, Some("a.example"));
        assert!(!memory.is_home(&folded, &format!("see {}", address("a.example"))));
    }
}

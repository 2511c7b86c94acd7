//! What the user is to know of, said to the shim.

use std::{collections::HashSet, sync::Mutex};

use firedoor_model::{
    Untrusted,
    broker::{MAX_NOTICES, Notice, Said, Seen},
};

use super::{lane::Lane, say};

/// What was said already: each thing once, and few of them.
#[derive(Default)]
pub struct Notices(Mutex<HashSet<Notice>>);

impl Notices {
    /// Says something about the service of a lane.
    pub fn tell(&self, lane: &Lane, seen: Seen, place: &str) {
        self.tell_of(&lane.route.secret, &lane.host, seen, place);
    }

    /// As [`Notices::tell`], by the names of secret and host.
    pub fn tell_of(&self, secret: &str, host: &str, seen: Seen, place: &str) {
        let notice = Notice { seen, secret: Untrusted::new(secret), host: host.to_owned(), place: place.to_owned() };
        let Ok(mut said) = self.0.lock() else { return };
        // What a server does to its own connections leaves room for what it tries with credentials.
        let own = |seen: Seen| matches!(seen, Seen::Unnamed | Seen::Unspoken | Seen::Distrusted);
        let room = !own(seen) || said.iter().filter(|notice| own(notice.seen)).count() < MAX_NOTICES / 2;
        if room && said.len() < MAX_NOTICES && said.insert(notice.clone()) {
            // Without a shim there is nobody to tell, and this program ends.
            let _ = say(&Said::Noticed(notice));
        }
    }
}

//! How often and with how much a tool is called, against a budget and against what it was used to before.
//!
//! Numbers say little about a single call, so what is found is recorded. Somebody is asked where a tool that sends data away
//! is far out of line: many budgets at once, many times its usual, or much longer arguments than ever to a host that is new.

use std::collections::HashMap;

use firedoor_model::{
    Confidence, EntryId, Finding, Habit, Millis, Severity,
    finding::Role,
    habit::{MAX_KNOWN, MAX_TOOLS, mark, note},
};
use serde::Deserialize;

use crate::{Call, Inspector, Memory, Sink, arguments::Arguments, evidence, hosts::schemes};

/// Most tools of which one agent's session keeps numbers; further ones of a server share one place.
const MAX_COUNTED: usize = 512;
/// Minutes over which bytes are added up.
const MINUTES: usize = 10;
const MINUTE: u64 = 60_000;
/// Longest argument that is read for hosts, and most hosts of one call.
const MAX_TEXT: usize = 64 * 1024;
const MAX_HOSTS: usize = 16;

/// The numbers of `profiles/detect/budgets.toml`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Budgets {
    external: Budget,
    inside: Budget,
    ask: AskFrom,
    known: Known,
}

/// What may be used up before it is recorded.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Budget {
    calls: u64,
    bytes: u64,
}

/// From where on somebody is asked.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskFrom {
    budgets: u64,
    usual: u64,
}

/// When a tool counts as known, and what is unlike it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    sessions: u32,
    calls: u64,
    times: u64,
    bytes: u64,
    one_in: u64,
}

/// What the tools of one agent's session were called with so far.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    /// By server, then by tool. The empty name stands for all tools that found no place.
    tools: HashMap<EntryId, HashMap<String, Count>>,
    counted: usize,
}

/// One tool's numbers.
#[derive(Debug, Default)]
struct Count {
    /// The number of the latest minute, and calls and bytes of it and the nine before, by number modulo ten.
    minute: u64,
    minutes: [(u64, u64); MINUTES],
    /// What is kept at the end.
    session: Habit,
    /// From which numbers on is told again.
    told: (u64, u64),
    told_long: bool,
}

impl Count {
    /// Adds a call and gives the calls of this minute and the bytes of ten. A clock that goes back stays where it was.
    fn add(&mut self, bytes: u64, now: Millis) -> (u64, u64) {
        let minute = (now.0 / MINUTE).max(self.minute);
        let gone = (minute - self.minute).min(MINUTES as u64);
        for n in 0..gone {
            if let Some(old) = self.minutes.get_mut(((minute - n) % MINUTES as u64) as usize) {
                *old = (0, 0);
            }
        }
        self.minute = minute;
        let mut calls = 0;
        if let Some(now) = self.minutes.get_mut((minute % MINUTES as u64) as usize) {
            *now = (now.0 + 1, now.1.saturating_add(bytes));
            calls = now.0;
        }
        let volume = self.minutes.iter().fold(0u64, |sum, m| sum.saturating_add(m.1));
        let session = &mut self.session;
        session.calls += 1;
        session.per_minute = session.per_minute.max(calls);
        session.longest = session.longest.max(bytes);
        session.volume = session.volume.max(volume);
        (calls, volume)
    }
}

impl Usage {
    fn of(&mut self, entry: &EntryId, tool: &str) -> &mut Count {
        let known = self.tools.get(entry).is_some_and(|tools| tools.contains_key(tool));
        let name = if known || self.counted < MAX_COUNTED { tool } else { "" };
        let tools = self.tools.entry(entry.clone()).or_default();
        let before = tools.len();
        let found = tools.entry(name.to_owned()).or_default();
        self.counted += usize::from(before == 0) + usize::from(!known && !name.is_empty());
        found
    }

    /// Takes out what a server's tools were called with.
    fn take(&mut self, entry: &EntryId) -> Vec<(String, Habit)> {
        let tools = self.tools.remove(entry).unwrap_or_default();
        self.counted = self.tools.values().map(|t| t.len() + 1).sum();
        let named = tools.into_iter().filter(|(name, _)| !name.is_empty());
        let mut out: Vec<_> = named.map(|(name, count)| (name, count.session)).collect();
        out.sort_by(|a, b| b.1.calls.cmp(&a.1.calls).then_with(|| a.0.cmp(&b.0)));
        out.truncate(MAX_TOOLS);
        out
    }
}

impl Memory {
    /// What each tool of a server was called with in this session so far, most called first; it counts from nothing
    /// afterwards. For [`Habit::learn`].
    pub fn take_habits(&mut self, entry: &EntryId) -> Vec<(String, Habit)> {
        self.usage.take(entry)
    }
}

impl Inspector {
    /// Counts a call and says where it is out of line.
    pub(crate) fn usage(&self, memory: &mut Memory, call: &Call<'_>, arguments: &Arguments<'_>) -> Vec<Finding> {
        if call.method != "tools/call" {
            return Vec::new();
        }
        let budgets = &self.budgets;
        let external = call.sink == Sink::External;
        let usual = call.usual.filter(|u| u.sessions >= budgets.known.sessions && u.calls >= budgets.known.calls);
        let count = memory.usage.of(call.entry, call.subject);
        let bytes = arguments.raw.len() as u64;
        let (calls, volume) = count.add(bytes, call.now);
        let mut out = Vec::new();
        let finding = |detector: &'static str, ask: bool, summary: String| Finding {
            detector: detector.into(),
            severity: if ask { Severity::Medium } else { Severity::Low },
            confidence: if ask { Confidence::Likely } else { Confidence::Possible },
            summary,
            evidence: vec![evidence(Role::Sink, Some(call.entry), call.subject, "/arguments".to_owned(), b"")],
        };

        let budget = if external { budgets.external } else { budgets.inside };
        let before = usual.map(|u| (u.per_minute, u.volume));
        let (told_calls, told_bytes) = &mut count.told;
        for (detector, now, budget, before, told) in [
            ("call/rate", calls, budget.calls, before.map(|b| b.0), told_calls),
            ("call/volume", volume, budget.bytes, before.map(|b| b.1), told_bytes),
        ] {
            // What a known tool does every day is no news.
            let most = budget.max(before.unwrap_or_default().saturating_mul(2));
            let far = match before {
                Some(usual) => usual.saturating_mul(budgets.ask.usual).max(budget),
                None => budget.saturating_mul(budgets.ask.budgets),
            };
            let ask = external && now > far;
            if now <= most || !ask && now < *told {
                continue;
            }
            *told = now.saturating_mul(2);
            let what = if detector == "call/rate" {
                format!("The tool was called {now} times within a minute")
            } else {
                format!("The tool was given {} KiB within ten minutes", now / 1024)
            };
            let than = match before {
                Some(usual) if detector == "call/rate" => format!("at most {usual} times before"),
                Some(usual) => format!("at most {} KiB before", usual.div_ceil(1024)),
                None if detector == "call/rate" => format!("{budget} are its budget"),
                None => format!("{} KiB are its budget", budget / 1024),
            };
            out.push(finding(detector, ask, format!("{what}; {than}.")));
        }

        let mut marks: Vec<u64> = Vec::new();
        hosts(arguments, &mut |host| {
            note(&mut marks, mark(host));
        });
        let names: Vec<u64> = arguments.names.iter().take(MAX_KNOWN).map(|name| mark(name)).collect();
        if let Some(usual) = usual {
            let known = &budgets.known;
            let telling = usual.hosts.len() < MAX_KNOWN && usual.hosts.len() as u64 * known.one_in <= usual.calls;
            let unseen = |marks: &[u64], before: &[u64]| marks.iter().any(|mark| !before.contains(mark));
            let long = bytes >= known.bytes && bytes > usual.longest.saturating_mul(known.times);
            let new_host = telling && unseen(&marks, &usual.hosts);
            let new_name = usual.arguments.len() < MAX_KNOWN && unseen(&names, &usual.arguments);
            let ask = external && long && new_host;
            let first = new_host && unseen(&marks, &count.session.hosts)
                || new_name && unseen(&names, &count.session.arguments)
                || long && !count.told_long;
            if ask || first {
                count.told_long |= long;
                let signs = [
                    new_host.then_some("names a host that it never named"),
                    new_name.then_some("has an argument that it never had"),
                    long.then_some("is many times as long as any"),
                ];
                let signs: Vec<&str> = signs.into_iter().flatten().collect();
                let summary = format!("The call {} in {} calls before.", signs.join(" and "), usual.calls);
                out.push(finding("call/unlike-before", ask, summary));
            }
        }
        for (known, seen) in [(&mut count.session.hosts, marks), (&mut count.session.arguments, names)] {
            seen.into_iter().for_each(|mark| {
                note(known, mark);
            });
        }
        out
    }
}

/// Hosts that a call's arguments name: of addresses, and of mail.
fn hosts(arguments: &Arguments<'_>, visit: &mut dyn FnMut(&str)) {
    let mut left = MAX_HOSTS;
    for leaf in arguments.values().filter(|leaf| leaf.text.len() <= MAX_TEXT) {
        let text = leaf.text.as_ref();
        let after = |at: usize| text.get(at..).unwrap_or_default();
        let addresses = schemes(text).map(after);
        let mails = memchr::memchr_iter(b'@', text.as_bytes()).map(|at| after(at + 1));
        for (rest, address) in addresses.map(|rest| (rest, true)).chain(mails.map(|rest| (rest, false))) {
            let end = rest.find(|c: char| c.is_whitespace() || "/?#\"'<>,;)\\".contains(c)).unwrap_or(rest.len());
            let mut host = rest.get(..end.min(1024)).unwrap_or_default();
            if address {
                // What stands before an "@" is a user's name.
                host = host.rsplit('@').next().unwrap_or_default();
            }
            let host = host.split(':').next().unwrap_or_default().trim_end_matches(['.', '!']);
            if !host.contains('.') || host.len() > 253 {
                continue;
            }
            if left == 0 {
                return;
            }
            left -= 1;
            visit(&host.to_ascii_lowercase());
        }
    }
}

#[cfg(test)]
mod tests;

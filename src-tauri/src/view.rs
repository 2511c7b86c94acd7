//! What the windows get: text that is safe to show, and numbers. TypeScript types are generated from these.
//!
//! Architecture invariant: every string that is not ours went through [`Untrusted::visible`].

mod activity;
mod asked;
mod changes;
mod finding;
mod overview;
mod question;
mod rules;
mod secrets;
mod server;
mod settings;

pub use activity::{ActivityView, CountsView, Offer, RowView, RowsQuery};
pub use asked::{AskedView, ChangedView, CommandView, MatterView, ServersView};
pub use changes::{ActionView, CheckedView, FileDoneView, PlanView, ProgressView};
pub use finding::FindingView;
pub use overview::{FoundClientView, OverviewView};
pub use question::{AnswerView, ChoiceView, DurationView, QuestionView, WholeArgumentsView};
pub use rules::RulesView;
pub use secrets::{SecretsView, id as secret_id};
pub use server::{GrantKind, GrantView, Parts as ServerParts, ServerView, SignInView, UsageView, VisitView, granted};
pub use settings::{AboutView, ExportView, ModeView, SettingsView, VerifiedView};

use std::path::Path;

use firedoor_clients::Clients;
use firedoor_model::{EntryId, Untrusted};

/// A name: of a tool, a server, a client.
const NAME: usize = 120;
/// A sentence or a path.
const SENTENCE: usize = 600;

fn name(text: &str) -> String {
    Untrusted::new(text).visible(NAME)
}

fn sentence(text: &str) -> String {
    Untrusted::new(text).visible(SENTENCE)
}

/// A path, with the user's home written as people write it.
pub fn path(path: &Path, home: &Path) -> String {
    match path.strip_prefix(home) {
        Ok(below) => sentence(&format!("~/{}", below.display())),
        Err(_) => sentence(&path.display().to_string()),
    }
}

/// The client's name for people, or its id when the catalog does not have it.
fn app_name(clients: &Clients, entry: &EntryId) -> String {
    let known = clients.known().find(|(id, _)| *id == entry.client());
    known.map_or_else(|| name(entry.client()), |(_, name)| name.to_owned())
}

/// A server, after its client.
pub fn server(clients: &Clients, entry: &EntryId) -> String {
    format!("{} › {}", app_name(clients, entry), name(entry.server()))
}

/// An entry's id, as the window names it.
pub fn shown_entry(entry: &EntryId) -> String {
    sentence(&entry.to_string())
}

/// A server's name, as the window names it.
pub fn shown_name(server: &str) -> String {
    name(server)
}

/// Text with line breaks kept as such and everything else that hides made visible.
fn lines(text: &str, max: usize) -> String {
    let mut left = max;
    let mut shown = Vec::new();
    for line in text.split('\n') {
        shown.push(Untrusted::new(line).visible(left));
        left = left.saturating_sub(line.chars().count() + 1);
        if left == 0 {
            break;
        }
    }
    shown.join("\n")
}

#[cfg(test)]
mod bindings;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_is_a_tilde() {
        let check = |text: &str, want: &str| assert_eq!(path(Path::new(text), Path::new("/home/u")), want);
        check("/home/u/.cursor/mcp.json", "~/.cursor/mcp.json");
        check("/home/user/x", "/home/user/x");
        check("/etc/a\u{202e}", "/etc/a⟨U+202E⟩");
    }

    #[test]
    fn lines_stay_lines_and_nothing_hides() {
        assert_eq!(lines("a\nb\u{202e}\rc", 100), "a\nb⟨U+202E⟩⟨U+000D⟩c");
        assert_eq!(lines("abc\ndef", 5), "abc\nd…");
        assert_eq!(lines("", 5), "");
        assert_eq!(lines("abcdef\nx", 3), "abc…");
    }
}

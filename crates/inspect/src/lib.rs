//! Detectors: (message, memory of the agent's session) to findings. Pure.
//!
//! Architecture invariants: no I/O, no clock (time arrives with each message), no verdicts. Raw messages are read, never
//! rewritten. Everything is bounded and linear in the size of the message, and regexes never backtrack. No finding holds
//! text of a message outside its masked evidence.

mod ahead;
mod arguments;
mod beside;
mod canonical;
mod capabilities;
mod commands;
mod confidential;
mod contacts;
mod credentials;
mod decode;
mod deeds;
mod definitions;
mod denied;
mod exposure;
mod flow;
mod fold;
mod gravest;
mod hosts;
mod index;
mod inflate;
pub mod injection;
mod kept;
mod keywords;
mod lanes;
mod language;
mod likeness;
mod masked;
mod memory;
mod orders;
mod passages;
mod placeholder;
mod privacy;
mod randomness;
mod reach;
pub mod record;
mod result;
mod schema;
mod sensitive;
mod sink;
mod strings;
pub mod telling;
mod trifecta;
mod usage;
mod view;
mod weights;

use arguments::Arguments;
use deeds::Lasting;
use firedoor_model::{
    Confidence, EntryId, Evidence, Finding, Habit, Millis, Severity, Untrusted,
    finding::{Role, mask},
    wire::Leaves,
};
use gravest::Gravest;
use orders::Followed;
use strings::in_leaf;

pub use canonical::same_in_any_order;
pub use definitions::{
    Definition, DefinitionKind, Definitions, DefinitionsError, MAX_DEFINITIONS, MAX_FIELDS, MAX_NAME, definitions, diff,
};
pub use denied::{Denied, denied};
pub use exposure::Exposure;
pub use gravest::MAX_FINDINGS;
pub use likeness::{Neighbour, Neighbourhood, Sketch};
pub use memory::{Label, Limits, Memory};
pub use passages::{Passage, classified, passages};
pub use privacy::Privacy;
use reach::Toward;
pub use schema::Schema;
pub use sink::Sink;
pub use weights::WeightsError;

/// A data file that ships with Firedoor cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("profiles/detect/{file}: {reason}")]
pub(crate) struct TableError {
    file: &'static str,
    reason: String,
}

impl TableError {
    pub(crate) fn new(file: &'static str, reason: &dyn std::fmt::Display) -> Self {
        Self { file, reason: reason.to_string() }
    }
}

/// A request of the client on its way to a server.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The server.
    pub entry: &'a EntryId,
    /// `tools/call`, `prompts/get`, `resources/read`, …
    pub method: &'a str,
    /// Tool or prompt name, or the resource's URI.
    pub subject: &'a str,
    /// Raw JSON of the arguments, if any.
    pub arguments: Option<&'a str>,
    /// Where the arguments go.
    pub sink: Sink,
    /// What the tool says that it takes, where that is known.
    pub schema: Option<&'a Schema>,
    /// What the tool was called with in earlier sessions, where that is known.
    pub usual: Option<&'a Habit>,
    /// When.
    pub now: Millis,
}

/// What must be known about a call when its result arrives. The engine keeps it beside the request's id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallLabel {
    /// How private its result is.
    pub privacy: Privacy,
    /// Where its arguments went.
    pub sink: Sink,
}

/// Where a result, an error, or a request of the server comes from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The server.
    pub entry: &'a EntryId,
    /// The method that is answered, or the server's own.
    pub method: &'a str,
    /// What was called; empty where nothing was.
    pub subject: &'a str,
    /// The label of the call; the default where there was none.
    pub label: CallLabel,
    /// When.
    pub now: Millis,
}

/// The compiled tables of all detectors. Made once, shared by all sessions.
#[derive(Debug)]
pub struct Inspector {
    credentials: credentials::Credentials,
    sensitive: sensitive::SensitivePaths,
    sinks: sink::SinkWords,
    sources: privacy::SourceWords,
    injections: injection::Injections,
    confidential: confidential::Confidential,
    commands: commands::Commands,
    capabilities: capabilities::Capabilities,
    budgets: usage::Budgets,
    /// The words of credentials and phrases.
    words: ahead::Both,
}

impl Default for Inspector {
    fn default() -> Self {
        Self::new()
    }
}

impl Inspector {
    /// Compiles the tables.
    pub fn new() -> Self {
        #[expect(clippy::expect_used, reason = "the tables are part of the program; tests load them")]
        Self::load(include_bytes!("../../../profiles/detect/injection.weights"))
            .expect("the detection tables that ship with this program are valid")
    }

    /// As [`Inspector::new`], with other weights of the injection model: for measuring weights that are being made.
    pub fn with_weights(weights: &'static [u8]) -> Result<Self, WeightsError> {
        injection::model::Model::read(weights)?;
        #[expect(
            clippy::expect_used,
            reason = "the tables are part of the program; tests load them, and the weights were read"
        )]
        Ok(Self::load(weights).expect("the detection tables that ship with this program are valid"))
    }

    fn load(weights: &'static [u8]) -> Result<Self, TableError> {
        let credentials = credentials::Credentials::load(include_str!("../../../profiles/detect/credentials.toml"))?;
        let confidential = confidential::Confidential::load(
            include_str!("../../../profiles/detect/private-words.toml"),
            include_bytes!("../../../profiles/detect/telling.weights"),
        )?;
        let mut injections = injection::Injections::load(
            include_str!("../../../profiles/detect/injection.toml"),
            include_str!("../../../profiles/detect/languages.toml"),
            weights,
            confidential.words(),
        )?;
        let words = ahead::Both::new(credentials.words(), injections.words());
        injections.forget_words();
        Ok(Self {
            words,
            credentials,
            injections,
            confidential,
            sensitive: sensitive::SensitivePaths::load(include_str!("../../../profiles/detect/sensitive-paths.toml"))?,
            sinks: toml::from_str(include_str!("../../../profiles/detect/sinks.toml"))
                .map_err(|e| TableError::new("sinks.toml", &e))?,
            sources: toml::from_str(include_str!("../../../profiles/detect/sources.toml"))
                .map_err(|e| TableError::new("sources.toml", &e))?,
            commands: commands::Commands::load(include_str!("../../../profiles/detect/calls.toml"))?,
            capabilities: capabilities::Capabilities::load(include_str!("../../../profiles/detect/capabilities.toml"))?,
            budgets: toml::from_str(include_str!("../../../profiles/detect/budgets.toml"))
                .map_err(|e| TableError::new("budgets.toml", &e))?,
        })
    }

    /// Where a tool's arguments go, by its name and, where known, the raw JSON of its definition.
    pub fn sink(&self, tool: &str, definition: Option<&str>) -> Sink {
        self.sinks.classify(tool, definition)
    }

    /// Where a read of a resource goes.
    pub fn sink_of_uri(&self, uri: &str) -> Sink {
        sink::SinkWords::classify_uri(uri)
    }

    /// Whether a call names a path whose content is private, but for what stands in members `except`.
    fn names_private(
        &self,
        call: &Call<'_>,
        arguments: &Arguments<'_>,
        except: &[String],
        excepted_if: impl Fn(&str) -> bool,
    ) -> bool {
        let (mut of_pattern, mut excepted) = (false, false);
        call.method != "tools/call" && self.sensitive.names(call.subject)
            || arguments.leaves.iter().any(|leaf| {
                if leaf.key {
                    of_pattern = sensitive::holds_pattern(&leaf.text);
                    excepted = except.iter().any(|member| leaf.text.eq_ignore_ascii_case(member));
                }
                match of_pattern && !leaf.key {
                    true => self.sensitive.names_in_pattern(&leaf.text),
                    false => !(excepted && excepted_if(&leaf.text)) && self.sensitive.names(&leaf.text),
                }
            })
    }

    /// What must be known about the call when its result arrives.
    pub fn label(&self, call: &Call<'_>) -> CallLabel {
        let arguments = Arguments::of(call);
        // What a call writes down is not read. What of it was not looked at may name anything.
        let reads = arguments.cut
            || self.names_private(call, &arguments, self.commands.texts(call), |_| true)
                && !self.commands.writes_documents(call, &self.sources);
        let privacy = if reads { Privacy::Sensitive } else { self.sources.privacy(call, &arguments) };
        CallLabel { privacy, sink: call.sink }
    }

    /// Judges a call before it reaches the server.
    pub fn call(&self, memory: &mut Memory, call: &Call<'_>) -> Vec<Finding> {
        let arguments = Arguments::of(call);
        let mut out = flow::inspect(memory, call, &arguments, self.sources.toward(call, &arguments));
        out.extend(self.secrets_in_call(memory, call));
        out.extend(self.commands(call, &arguments));
        out.extend(schema::inspect(call));
        out.extend(self.after_injection(memory, call, &arguments, &out));
        out.extend(self.trifecta(memory, call));
        out.extend(self.usage(memory, call, &arguments));
        memory.orders.called(call, call.method == "tools/call" && self.sources.hands_on(call.subject));
        self.mask_evidence(memory, &mut out);
        out
    }

    /// Judges what a call has beside its arguments, as one object in their place. No schema speaks about it, and it is no
    /// call of its own to be counted.
    pub fn beside(&self, memory: &mut Memory, call: &Call<'_>) -> Vec<Finding> {
        let arguments = Arguments::of(call);
        let mut out = flow::inspect(memory, call, &arguments, Toward::NOWHERE);
        out.extend(self.secrets_in_call(memory, call));
        out.extend(self.commands(call, &arguments));
        out.extend(self.after_injection(memory, call, &arguments, &out));
        out.extend(self.trifecta(memory, call));
        for evidence in out.iter_mut().flat_map(|finding| &mut finding.evidence).filter(|e| e.role != Role::Source) {
            // What is about the whole call stands where it stands for the arguments, too.
            if let Some(place) = evidence.pointer.raw().strip_prefix("/arguments/") {
                evidence.pointer = Untrusted::new(format!("/{place}"));
            }
        }
        self.mask_evidence(memory, &mut out);
        out
    }

    /// Whether a call sends its arguments away: what is written into notes and databases of this machine, or looked up there, does not.
    fn sends(&self, call: &Call<'_>) -> bool {
        self.sinks.sends(call) && (self.sinks.says_so(call.subject) || !self.sources.is_here(call))
    }

    /// What of a call lasts; `found` is what else is said of it.
    fn lasting(&self, call: &Call<'_>, found: &[Finding]) -> Option<Lasting> {
        let documents = || self.commands.writes_documents(call, &self.sources);
        let undone = || found.iter().any(|finding| self.commands.cannot_be_undone(&finding.detector)) && !documents();
        let is_started = |text: &str| deeds::path(text).is_some_and(|path| self.sensitive.is_started(&path));
        let started = || {
            self.sources.writes(call.subject)
                && Leaves::of(call.arguments.unwrap_or_default()).any(|leaf| !leaf.key && is_started(&leaf.text))
        };
        let named = self.sources.lasting(call);
        named.or_else(|| undone().then_some(Lasting::Final)).or_else(|| started().then_some(Lasting::Started))
    }

    /// A sensitive call of an agent that has read instructions from somebody else; `found` is what else is said of it.
    fn after_injection(
        &self,
        memory: &Memory,
        call: &Call<'_>,
        arguments: &Arguments<'_>,
        found: &[Finding],
    ) -> Option<Finding> {
        if call.method != "tools/call" || memory.orders.is_empty() {
            return None;
        }
        let (first, sends) = (memory.orders.first(), self.sends(call));
        // Whoever gave the instructions may have a script written that somebody runs later. What is sent is no script.
        let sent = |text: &str| sends && text.contains(char::is_whitespace);
        let private = first.filter(|_| self.names_private(call, arguments, self.commands.sent(call), sent));
        let followed = || match call.sink {
            Sink::External if sends => memory.orders.followed(call, &self.sources, true),
            Sink::Unknown if !self.sources.is_here(call) => memory.orders.followed(call, &self.sources, false),
            // What a service that many share calls a file is no file of this machine.
            Sink::Local if self.sources.for_everybody(call) => memory.orders.names(call, &self.sources),
            _ => None,
        };
        let lasting = || first.and_then(|read| Some((read, self.lasting(call, found)?)));
        const AFTER: &str = "flow/after-injection";
        let ordered =
            |what: &str| format!("The agent has read a text that gives it instructions, and the call {what}.");
        let hinted = "The call goes to somebody named in a text that may give the agent instructions.";
        let (read, detector, confidence, summary) = if let Some(read) = private {
            (read, AFTER, Confidence::Likely, ordered("names a private file"))
        } else {
            match (followed(), lasting()) {
                (Some(Followed::Order(read)), _) if sends => {
                    (read, AFTER, Confidence::Likely, ordered("sends data away"))
                }
                (Some(Followed::Order(read)), _) => {
                    (read, AFTER, Confidence::Likely, ordered("goes to somebody whom that text names"))
                }
                (_, Some((read, lasting))) => (read, AFTER, Confidence::Likely, ordered(lasting.says())),
                (Some(Followed::Hint(read)), None) => {
                    (read, "flow/after-injection-hint", Confidence::Likely, hinted.to_owned())
                }
                (None, None) => {
                    // A name of its own: whoever refuses the first ones does not refuse all that the tool sends from then on.
                    let what = ordered("sends data away, but to nobody whom that text names");
                    (first.filter(|_| sends)?, "flow/after-injection-elsewhere", Confidence::Possible, what)
                }
            }
        };
        let source = Evidence {
            role: Role::Source,
            entry: Some(read.origin.entry.clone()),
            tool: Some(read.origin.tool.clone()),
            pointer: Untrusted::new(read.pointer.as_ref()),
            span: None,
            excerpt: read.excerpt.clone(),
            transform: None,
            age_ms: Some(call.now.since(read.origin.at)),
        };
        Some(Finding {
            detector: detector.into(),
            severity: Severity::High,
            confidence,
            summary,
            evidence: vec![source, evidence(Role::Sink, Some(call.entry), call.subject, "/arguments".to_owned(), b"")],
        })
    }

    /// Credentials in the arguments that came from no tool: from the user, or from what the model knows.
    fn secrets_in_call(&self, memory: &mut Memory, call: &Call<'_>) -> Vec<Finding> {
        let mut out: Gravest<Finding> = Gravest::default();
        let arguments = call.arguments.unwrap_or_default();
        let mut check = |text: &[u8], length: usize, hits: Vec<credentials::Hit<'_>>, place: &dyn Fn() -> String| {
            for hit in hits {
                let value = hit.value(text);
                let folded = fold::folded(value);
                if memory.knows(&folded) {
                    continue;
                }
                memory.give(call.entry, &folded);
                // An address that lets its holder write somewhere, given where an address belongs.
                let member = || place().rsplit('/').next().is_some_and(|member| self.sources.is_address(member));
                let address = text.get(..hit.span.0).and_then(|before| before.strip_prefix(b"https://"));
                let first = address.is_some_and(|before| !before.iter().any(|b| b"?#@\\".contains(b)));
                let used = hit.rule.contains("webhook") && first && member();
                out.push(Finding {
                    detector: "call/secret".into(),
                    severity: Severity::Medium,
                    confidence: if used { Confidence::Possible } else { hit.confidence() },
                    summary: format!("The arguments hold a credential ({}) that no tool returned.", hit.rule),
                    evidence: vec![Evidence {
                        span: Some(in_leaf(hit.span, text.len(), length)),
                        ..evidence(Role::Sink, Some(call.entry), call.subject, place(), value)
                    }],
                });
            }
        };
        if call.method != "tools/call" {
            let text = call.subject.as_bytes();
            check(text, text.len(), self.credentials.scan(text), &|| flow::subject_pointer(call.method).to_owned());
        }
        let mut placeholder = None;
        self.each_string(arguments, &mut |leaf, text, hits, _, leaves| {
            check(text, leaf.text.len(), hits, &|| format!("/arguments{}", leaves.pointer()));
            if placeholder.is_none() && placeholder::stands_in(&leaf.text) {
                placeholder = Some(placeholder::in_call(call, format!("/arguments{}", leaves.pointer())));
            }
        });
        let mut out = out.into_vec();
        out.extend(placeholder);
        out
    }
}

/// One place, its text masked.
fn evidence(role: Role, entry: Option<&EntryId>, tool: &str, pointer: String, secret: &[u8]) -> Evidence {
    let secret: String = String::from_utf8_lossy(secret).chars().take(200).collect();
    Evidence {
        role,
        entry: entry.cloned(),
        tool: (!tool.is_empty()).then(|| tool.into()),
        pointer: pointer.as_str().into(),
        span: None,
        excerpt: mask(&secret).as_str().into(),
        transform: None,
        age_ms: None,
    }
}

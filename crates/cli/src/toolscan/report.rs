//! What is reported about one run.

use serde::Serialize;

/// The whole of it. Holds what the program was given as it is: for the eyes of whoever gave it.
#[derive(Serialize)]
pub struct Report {
    /// What was run.
    pub target: Vec<String>,
    /// `firedoor`, or `paper` for the paper's matcher.
    pub matcher: &'static str,
    /// The run.
    pub exec: Exec,
    /// What the program could learn.
    pub sources: Vec<Source>,
    /// What of its output an agent reads.
    pub sinks: Vec<Sink>,
    /// What came through.
    pub flows: Vec<Flow>,
    /// What it tried and may not.
    pub violations: Vec<Violation>,
    /// In numbers.
    pub summary: Summary,
}

/// One bounded run.
#[derive(Serialize)]
pub struct Exec {
    pub stdout: String,
    pub stderr: String,
    /// 128 plus the signal's number where one ended it.
    pub exit_code: i32,
    pub duration_ms: u64,
    /// Which bound ended it: `time` or `output`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<&'static str>,
    /// What the sandbox enforced: `full`, …
    pub sandbox: String,
    /// What whoever reads this should know: grants that were cut.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What kind of thing it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// A variable of its environment.
    Env,
    /// A file that it could read.
    File,
    /// An address that its output says it would fetch.
    Http,
    /// A host that it connected to or was refused, as the sandbox saw it.
    Host,
}

/// One thing that it could learn.
#[derive(Clone, Debug, Serialize)]
pub struct Source {
    #[serde(rename = "type")]
    pub kind: SourceKind,
    /// The variable's name, the file's path, the address, the host and its port.
    pub name: String,
    /// What it held; of files the first 64 KiB.
    pub value: String,
    /// Whether it was opened, or reached, during the run, where that was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opened: Option<bool>,
}

impl Source {
    /// A variable.
    pub fn env(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { kind: SourceKind::Env, name: name.into(), value: value.into(), opened: None }
    }
}

/// How an agent comes to read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SinkKind {
    /// A line with `PROMPT:`.
    PromptLine,
    /// A member `prompt`, or the `content` of `messages`.
    JsonPrompt,
    /// Another string in JSON.
    ToolReturn,
    /// A line that is no JSON.
    Text,
}

/// One text that an agent reads.
#[derive(Clone, Debug, Serialize)]
pub struct Sink {
    #[serde(rename = "type")]
    pub kind: SinkKind,
    /// Its place in the JSON text, as a JSONPath.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    pub text: String,
}

impl Sink {
    /// A text at a place.
    pub fn new(kind: SinkKind, path: String, text: &str) -> Self {
        Self { kind, path, text: text.to_owned() }
    }
}

/// How sure it is that something came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// A part, or a beginning.
    Low,
    /// The whole value, or a long passage.
    High,
}

/// Something that came through.
#[derive(Clone, Debug, Serialize)]
pub struct Flow {
    /// Which of the sources.
    pub source: usize,
    /// Which of the sinks.
    pub sink: usize,
    /// What of the source.
    pub snippet: String,
    pub confidence: Level,
    /// How it was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transform: Option<String>,
}

/// Something that it tried and may not, or used up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// `filesystem`, `network`, `socket`, `listen`, `limit`.
    pub kind: &'static str,
    /// The path, the host, the limit.
    pub target: String,
    /// How that is known.
    pub evidence: String,
}

/// Numbers.
#[derive(Serialize)]
pub struct Summary {
    pub sources: usize,
    pub sinks: usize,
    pub flows: usize,
    pub violations: usize,
    pub has_external_to_prompt_flow: bool,
}

impl Report {
    /// Whether there is anything to look at.
    pub fn clean(&self) -> bool {
        self.flows.is_empty() && self.violations.is_empty()
    }
}

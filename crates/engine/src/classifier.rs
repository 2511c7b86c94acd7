//! A classifier of the user's own: a program behind a Unix socket that says of a text how much it reads like instructions
//! to an agent. docs/classifier.md says how it is spoken to.
//!
//! It delays nothing. A result has gone on when its texts are read; what follows is that the agent's session is marked, as
//! it is by Firedoor's own detector.

use std::{
    cell::{Cell, RefCell},
    io,
    path::Path,
    rc::Rc,
    time::Duration,
};

use firedoor_inspect::{DefinitionKind, Passage, Source, classified, passages};
use firedoor_model::{
    EntryId, Untrusted, Verdict,
    audit::{Event, What},
};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    sync::mpsc,
    time::timeout,
};

use crate::{
    agent::Agent,
    config,
    engine::Engine,
    session::{Asked, Session, recordable},
    sys::{self, OwnedReadHalf, OwnedWriteHalf},
};

/// Results that wait to be read. What comes when so many wait is not read.
const WAITING: usize = 64;
/// For one answer.
const ANSWER: Duration = Duration::from_secs(10);
/// How long a classifier that failed is left alone.
const REST: Duration = Duration::from_secs(10);
/// Longest answer, in bytes.
const MAX_ANSWER: u64 = 4096;

/// The queue in front of the user's classifier.
pub struct Classifier {
    settings: config::Classifier,
    jobs: mpsc::Sender<Job>,
    waiting: RefCell<Option<mpsc::Receiver<Job>>>,
    /// Why it does not answer.
    failed: RefCell<Option<String>>,
    /// Results that were not read.
    missed: Cell<u64>,
}

/// A result that is to be read. Its server may be gone by then; the agent has what it said.
struct Job {
    agent: Rc<Agent>,
    entry: EntryId,
    session: u64,
    asked: Asked,
    passages: Vec<Passage>,
}

/// What is asked, one line of JSON.
#[derive(Serialize)]
struct Question<'a> {
    text: &'a str,
}

/// What is answered, one line of JSON. It may say more.
#[derive(Deserialize)]
struct Answer {
    score: f64,
}

#[derive(Debug, thiserror::Error)]
enum ClassifierError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it belongs to another user")]
    Foreign,
    #[error("no answer within {} seconds", ANSWER.as_secs())]
    Slow,
    #[error("it closed the connection")]
    Closed,
    #[error("its answer is no line of JSON with a \"score\" from 0 to 1")]
    Answer,
}

impl Classifier {
    /// Nothing is connected yet.
    pub fn new(settings: config::Classifier) -> Self {
        let (jobs, waiting) = mpsc::channel(WAITING);
        Self {
            settings,
            jobs,
            waiting: RefCell::new(Some(waiting)),
            failed: RefCell::default(),
            missed: Cell::default(),
        }
    }

    /// Has a result read that was handed on. Definitions are judged one by one, elsewhere.
    pub fn read(&self, session: &Session, asked: &Asked, result: &str) {
        if DefinitionKind::of_method(&asked.method).is_some() {
            return;
        }
        let Ok(place) = self.jobs.try_reserve() else {
            self.missed.set(self.missed.get().saturating_add(1));
            return;
        };
        let passages = passages(result);
        if !passages.is_empty() {
            let (agent, entry, session) = (session.agent.clone(), session.entry.clone(), session.id);
            place.send(Job { agent, entry, session, asked: asked.clone(), passages });
        }
    }

    /// What keeps it from reading, if anything does.
    pub fn problem(&self) -> Option<String> {
        let (socket, missed) = (self.settings.socket.display(), self.missed.get());
        match &*self.failed.borrow() {
            Some(why) => {
                Some(format!("the classifier at {socket} does not answer: {why}; {missed} results were not read"))
            }
            None if missed > 0 => Some(format!("{missed} results were not read by the classifier at {socket}")),
            None => None,
        }
    }
}

/// Reads results as they come, one at a time, while the engine runs.
pub async fn run(engine: Rc<Engine>) {
    let Some(classifier) = &engine.classifier else { return };
    let Some(mut waiting) = classifier.waiting.take() else { return };
    let mut connection = None;
    while let Some(job) = waiting.recv().await {
        match first(&mut connection, &classifier.settings, &job.passages).await {
            Ok(found) => {
                if classifier.failed.take().is_some() {
                    engine.changed();
                }
                if let Some((passage, score)) = found {
                    mark(&engine, &job, passage, score).await;
                }
            }
            Err(e) => {
                connection = None;
                classifier.missed.set(classifier.missed.get().saturating_add(1));
                classifier.failed.replace(Some(e.to_string()));
                engine.changed();
                tokio::time::sleep(REST).await;
            }
        }
    }
}

/// The first passage that the classifier takes for instructions, and its score.
async fn first<'a>(
    connection: &mut Option<Connection>,
    settings: &config::Classifier,
    passages: &'a [Passage],
) -> Result<Option<(&'a Passage, f64)>, ClassifierError> {
    for passage in passages {
        let open = match connection.take() {
            Some(open) => open,
            None => timeout(ANSWER, Connection::open(&settings.socket)).await.map_err(|_| ClassifierError::Slow)??,
        };
        let open = connection.insert(open);
        let score = timeout(ANSWER, open.score(&passage.text)).await.map_err(|_| ClassifierError::Slow)??;
        if score >= settings.threshold {
            return Ok(Some((passage, score)));
        }
    }
    Ok(None)
}

/// Marks the agent's session and writes it down.
async fn mark(engine: &Engine, job: &Job, passage: &Passage, score: f64) {
    let (Job { agent, entry, session, asked, .. }, now) = (job, engine.now());
    let finding = {
        let mut memory = agent.memory.lock().await;
        let source = Source { entry, method: &asked.method, subject: &asked.subject, label: asked.label, now };
        classified(&mut memory, &source, passage, score)
    };
    let subject = match asked.subject.as_str() {
        "" => None,
        subject => Some(recordable(engine, agent, subject).await),
    };
    let what = What::Judged {
        method: Untrusted::new(asked.method.as_str()),
        subject,
        verdict: Verdict::Allow,
        reference: None,
        rule: None,
        findings: vec![finding],
    };
    let (entry, session, client) = (Some(entry.clone()), Some(*session), Some(agent.client.clone()));
    engine.recorder.record(Event { at: now, entry, session, client, what });
    engine.recorder.room().await;
}

/// An open connection, with no question on it.
struct Connection {
    from: BufReader<OwnedReadHalf>,
    to: OwnedWriteHalf,
}

impl Connection {
    async fn open(socket: &Path) -> Result<Self, ClassifierError> {
        // Texts of the user's results are for the user's own programs.
        let (from, to) = sys::program_of_the_user(socket).await?.ok_or(ClassifierError::Foreign)?;
        Ok(Self { from: BufReader::new(from), to })
    }

    async fn score(&mut self, text: &str) -> Result<f64, ClassifierError> {
        let mut line = serde_json::to_vec(&Question { text }).map_err(io::Error::from)?;
        line.push(b'\n');
        self.to.write_all(&line).await?;
        line.clear();
        if (&mut self.from).take(MAX_ANSWER).read_until(b'\n', &mut line).await? == 0 {
            return Err(ClassifierError::Closed);
        }
        let answer: Answer =
            line.strip_suffix(b"\n").and_then(|l| serde_json::from_slice(l).ok()).ok_or(ClassifierError::Answer)?;
        if (0.0..=1.0).contains(&answer.score) { Ok(answer.score) } else { Err(ClassifierError::Answer) }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use tokio::net::UnixListener;

    use super::*;

    /// What follows from these answers to as many passages.
    async fn check(answers: &[&str]) -> Result<Option<(String, f64)>, ClassifierError> {
        let directory = tempfile::tempdir().unwrap();
        let settings = config::Classifier { socket: directory.path().join("c"), threshold: 0.5 };
        let listener = UnixListener::bind(&settings.socket).unwrap();
        let all: Vec<Passage> =
            (0..answers.len()).map(|n| Passage { pointer: "/0".into(), text: format!("text \"{n}\"\n") }).collect();
        let answering = async {
            let (stream, _) = listener.accept().await.unwrap();
            let (from, mut to) = stream.into_split();
            let mut lines = BufReader::new(from).lines();
            for (n, answer) in answers.iter().enumerate() {
                let Some(line) = lines.next_line().await.unwrap() else { break };
                assert_eq!(line, format!(r#"{{"text":"text \"{n}\"\n"}}"#));
                to.write_all(answer.as_bytes()).await.unwrap();
            }
        };
        let (mut connection, reading) = (None, &all);
        let asking = async {
            let found = first(&mut connection, &settings, reading).await;
            drop(connection);
            found
        };
        let (found, ()) = tokio::join!(asking, answering);
        found.map(|found| found.map(|(passage, score)| (passage.text.clone(), score)))
    }

    #[tokio::test]
    async fn the_first_passage_at_the_threshold_counts() {
        let found =
            check(&["{\"score\":0.1}\n", "{\"score\":0.5,\"label\":\"x\"}\n", "{\"score\":1}\n"]).await.unwrap();
        assert_eq!(found, Some(("text \"1\"\n".to_owned(), 0.5)));
        assert_eq!(check(&["{\"score\":0}\n", "{\"score\":0.49}\n"]).await.unwrap(), None);
    }

    #[tokio::test]
    async fn what_is_no_answer_is_a_failure() {
        let long = format!("{{\"score\":0.1,\"x\":\"{}\"}}\n", "x".repeat(5000));
        for answer in
            ["{\"score\":1.5}\n", "{\"score\":-1}\n", "{\"score\":\"1\"}\n", "1\n", "\n", "{\"score\":1}", &long]
        {
            let failed = check(&[answer]).await;
            assert!(matches!(failed, Err(ClassifierError::Answer)), "{answer:.40}: {failed:?}");
        }
        assert!(matches!(check(&[""]).await, Err(ClassifierError::Closed)));
    }
}

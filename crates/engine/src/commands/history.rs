//! The log in pieces, calls counted, and how long rows are kept.

use std::rc::Rc;

use firedoor_ipc::command::{self, PageQuery, Reply};
use firedoor_model::{Millis, Verdict, audit::Outcome as Went};

use super::settings::{Outcome, note, text};
use crate::{engine::Engine, recorder::to_row};

/// Most rows of one piece.
const MOST: u32 = 500;

pub async fn page(engine: &Rc<Engine>, query: PageQuery) -> Outcome {
    let PageQuery { filter, before, after, limit } = query;
    let limit = limit.clamp(1, MOST);
    let page = engine.recorder.read(move |store| store.page(&filter, before, after, limit)).await.map_err(text)?;
    Ok(Reply::Page { rows: page.rows.into_iter().map(to_row).collect(), next: page.next })
}

pub async fn counts(engine: &Rc<Engine>, since: Millis, step: u64) -> Outcome {
    let counts = engine.recorder.read(move |store| store.counts(since, step)).await.map_err(text)?;
    let outcome = |c: &firedoor_store::Count| match (c.verdict, c.found) {
        (Verdict::Block, _) => Went::Blocked,
        (Verdict::Ask, _) => Went::Asked,
        (Verdict::Allow, true) => Went::Recorded,
        (Verdict::Allow, false) => Went::Allowed,
    };
    let counts = counts
        .into_iter()
        .map(|c| command::Count { outcome: outcome(&c), at: c.at, entry: c.entry, calls: c.calls })
        .collect();
    Ok(Reply::Counts { counts })
}

pub async fn settings(engine: &Rc<Engine>, log_days: Option<u32>, protect_new: Option<bool>) -> Outcome {
    if let Some(days) = log_days {
        note(engine, None, format!("the log is kept for {days} days")).await?;
        engine.recorder.with(move |store| store.set_log_days(days)).await.map_err(text)?;
        engine.log_days.set(days);
        engine.retain.notify_one();
    }
    if let Some(on) = protect_new {
        let without = if on { "without a question" } else { "only when the user says so" };
        note(engine, None, format!("new servers are protected {without}")).await?;
        engine.recorder.with(move |store| store.set_protect_new(on)).await.map_err(text)?;
        engine.protect_new.set(on);
    }
    let look = |store: &firedoor_store::Store<firedoor_store::ReadOnly>| Ok((store.size()?, store.oldest()?));
    let (log_bytes, oldest) = engine.recorder.read(look).await.map_err(text)?;
    let managed = engine.managed.file.clone().map(|file| command::Managed {
        file,
        mode: engine.managed.mode,
        rules: engine.managed.rules.len(),
    });
    Ok(Reply::Settings(command::Settings {
        mode: engine.mode.get(),
        log_days: engine.log_days.get(),
        log_bytes,
        oldest,
        protect_new: engine.protect_new.get(),
        managed,
    }))
}

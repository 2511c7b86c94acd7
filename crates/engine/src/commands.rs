//! Commands from the CLI.

mod answer;
mod attend;
mod broker;
mod confirm;
mod history;
mod observing;
mod rules;
mod secrets;
mod server;
pub(crate) mod settings;

use std::rc::Rc;

use firedoor_ipc::{
    command::{LogQuery, Reply, Request, Session as SessionView, Status, Withheld},
    endpoint::switch_off,
    process::{self, Peer},
    wire::WireError,
};
use firedoor_model::{
    Untrusted,
    audit::What,
    launch::{Access, Grant},
    question::{Choice, Extent},
};
use firedoor_store::{EntryGrants, Query};
use tokio::sync::broadcast::error::RecvError;

use confirm::Shown;

use crate::{
    connection::{Incoming, Outgoing},
    endpoints,
    engine::Engine,
    recorder::to_row,
};

/// Rows of the log read at once.
const PAGE: u32 = 500;

/// Longest description of an action that is written down, in characters. Ours are shorter.
const MAX_ACTION: usize = 200;

/// Serves one connection's commands until it closes.
pub async fn serve(engine: Rc<Engine>, peer: Peer, mut incoming: Incoming, outgoing: Outgoing) {
    while let Ok((request, _)) = incoming.receive::<Request>().await {
        let sent = match request {
            Request::Attend => attend::stream(&engine, &peer, &mut incoming, &outgoing).await,
            Request::ServeEndpoints => endpoints::serve(&engine, peer.process, &mut incoming, &outgoing).await,
            Request::Log(query) => log(&engine, &query, &mut incoming, &outgoing).await,
            request => match permitted(&engine, &peer, &request, (&mut incoming, &outgoing)).await {
                Ok(shown) => outgoing.send(&answer(&engine, &peer, request, shown).await).await,
                Err(Some(refused)) => outgoing.send(&refused).await,
                Err(None) => return,
            },
        };
        if sent.is_err() {
            return;
        }
    }
}

/// Whether a request may be made by this peer: else what to say instead, and nothing when nobody is there to hear it. What is
/// refused is recorded.
async fn permitted(
    engine: &Rc<Engine>,
    peer: &Peer,
    request: &Request,
    ends: (&mut Incoming, &Outgoing),
) -> Result<Shown, Option<Reply>> {
    let set = Set { mode: engine.mode.get(), log_days: engine.log_days.get(), protect_new: engine.protect_new.get() };
    let Some(action) = weakens(request, set) else { return Ok(None) };
    let Some(reason) = engine.authority.objection(peer) else {
        return confirm::confirmed(engine, peer, request, &action, ends).await;
    };
    let name = process::executable(peer.process.pid).and_then(|p| Some(p.file_name()?.to_string_lossy().into_owned()));
    let by = format!("{} ({})", name.unwrap_or_default(), peer.process.pid);
    let what = What::Denied { text: action.clone(), by: Untrusted::new(by), reason: reason.clone() };
    engine.commit(engine.event(what)).await;
    Err(Some(Reply::Refused { text: format!("{action} is refused to this process: {reason}") }))
}

/// What is set now, which decides whether something else is less.
#[derive(Clone, Copy)]
struct Set {
    mode: firedoor_model::Mode,
    log_days: u32,
    protect_new: bool,
}

/// What a request does, in words, if it weakens protection.
fn weakens(request: &Request, set: Set) -> Option<String> {
    use firedoor_model::Mode::{Balanced, Strict, Watch};
    // Whole: what is left out could be the end of a host's name.
    let seen = |text: &String| Untrusted::new(text.as_str()).visible(usize::MAX);
    match request {
        Request::Answer { id, choice: Choice::Allow, .. } => Some(format!("answering {id} with allow")),
        Request::AddRules { rules } => match rules.iter().filter(|r| r.effect == Choice::Allow).count() {
            0 => None,
            1 => Some("adding an allow rule".into()),
            n => Some(format!("adding {n} allow rules")),
        },
        Request::RemoveRule { id } => Some(format!("removing rule {id}")),
        Request::RestoreRule { id } => Some(format!("putting rule {id} back")),
        Request::RuleFromRow { seq, effect: Choice::Allow } => Some(format!("marking row {seq} as wrong")),
        Request::AcceptSuggestion { .. } => Some("adding a suggested rule".into()),
        Request::Settings { log_days, protect_new } => {
            let days =
                log_days.filter(|days| *days < set.log_days).map(|days| format!("keeping the log for {days} days"));
            let asked = (*protect_new == Some(false) && set.protect_new)
                .then(|| "protecting new servers only when asked".to_owned());
            let both: Vec<String> = days.into_iter().chain(asked).collect();
            (!both.is_empty()).then(|| both.join(", and "))
        }
        Request::AcceptPins { entry, .. } => Some(format!("accepting changed definitions of {entry}")),
        Request::AddGrants { entry, .. } => Some(format!("granting more to {entry}")),
        Request::Mode { set: Some(new) } => match (set.mode, new) {
            (Watch, Watch) | (Balanced | Watch, Balanced) | (_, Strict) => None,
            (_, new) => Some(format!("switching to mode {new}")),
        },
        Request::Pause { minutes } => Some(format!("pausing questions for {minutes} min")),
        Request::Ignore { entry } => Some(format!("leaving {entry} unprotected")),
        Request::AddRoute { entry, route } => Some(format!(
            "putting the secret {} of {entry} into broker mode, which sends it to {} in the header {}{}",
            seen(&route.secret),
            seen(&route.url),
            seen(&route.header),
            if route.intercept { ", and lets Firedoor read its server's encrypted connections there" } else { "" }
        )),
        Request::RemoveRoute { entry, secret } => Some(format!(
            "taking the secret {} of {entry} out of broker mode, so that its server gets it",
            seen(secret)
        )),
        Request::AddEndpoint { entry, .. } => Some(format!("giving {entry} an address of its own")),
        Request::Authorize { action } => Some(Untrusted::new(action.as_str()).visible(MAX_ACTION)),
        Request::Answer { choice: Choice::Block, .. }
        | Request::Mode { set: None }
        | Request::Status
        | Request::Pending
        | Request::Log(_)
        | Request::Attend
        | Request::Confirm { .. }
        | Request::KeepWithheld { .. }
        | Request::Quit
        | Request::Resume
        | Request::Shown { .. }
        | Request::Later { .. }
        | Request::VerifyLog
        | Request::Rules
        | Request::RuleFromRow { effect: Choice::Block, .. }
        | Request::Suggestions
        | Request::Page(_)
        | Request::Counts { .. }
        | Request::Pins { .. }
        | Request::Grants { .. }
        | Request::Observe { .. }
        | Request::Observation { .. }
        | Request::RemoveGrants { .. }
        | Request::Server { .. }
        | Request::Endpoints
        | Request::Routes
        | Request::Unlock { .. }
        | Request::Lock
        | Request::RemoveEndpoint { .. }
        | Request::ServeEndpoints
        | Request::EndpointState { .. }
        | Request::Stop { .. } => None,
    }
}

async fn answer(engine: &Rc<Engine>, peer: &Peer, request: Request, shown: Shown) -> Reply {
    let outcome = match request {
        Request::Status => {
            let mut status = status(engine);
            status.observe_next = observing::next(engine).await;
            Ok(Reply::Status(status))
        }
        Request::Pending => Ok(pending(engine)),
        Request::Answer { id, choice, duration, scope, also } => {
            answer::together(engine, &id, &also, choice, Extent { duration, scope }).await
        }
        Request::Shown { ids } => Ok(answer::shown(engine, &ids)),
        Request::Later { ids } => Ok(answer::later(engine, &ids)),
        Request::VerifyLog => settings::verify(engine).await,
        Request::Rules => rules::list(engine).await,
        Request::AddRules { rules } => rules::add(engine, rules).await,
        Request::RemoveRule { id } => rules::remove(engine, id).await,
        Request::RestoreRule { id } => rules::restore(engine, id).await,
        Request::RuleFromRow { seq, effect } => rules::from_row(engine, seq, effect).await,
        Request::Suggestions => rules::suggestions(engine).await,
        Request::AcceptSuggestion { id } => rules::accept(engine, id).await,
        Request::Page(query) => history::page(engine, query).await,
        Request::Counts { since, step } => history::counts(engine, since, step).await,
        Request::Settings { log_days, protect_new } => history::settings(engine, log_days, protect_new).await,
        Request::Pins { entry } => settings::pins(engine, entry).await,
        Request::AcceptPins { entry, tool, seen } => settings::accept_pins(engine, entry, tool, seen, shown).await,
        Request::KeepWithheld { entry, seen } => settings::keep_withheld(engine, entry, seen).await,
        Request::Grants { entry } => settings::grants(engine, entry).await,
        Request::AddGrants { entry, grants, env, hosts, sockets } => {
            settings::add_grants(engine, entry, EntryGrants { grants, env, hosts, sockets }).await
        }
        Request::RemoveGrants { entry, paths, env, hosts, sockets } => {
            // The store removes a path whatever its access is.
            let grants = paths.into_iter().map(|path| Grant { path, access: Access::Read }).collect();
            settings::remove_grants(engine, entry, EntryGrants { grants, env, hosts, sockets }).await
        }
        Request::Observe { entry, on } => observing::switch(engine, entry, on).await,
        Request::Observation { entry } => observing::show(engine, entry).await,
        Request::Server { entry } => server::show(engine, entry).await,
        Request::Stop { entry } => server::stop(engine, entry).await,
        Request::Routes => broker::list(engine).await,
        Request::AddRoute { entry, route } => broker::add(engine, entry, route).await,
        Request::RemoveRoute { entry, secret } => broker::remove(engine, entry, secret).await,
        Request::Unlock { key } => secrets::unlock(engine, key).await,
        Request::Lock => secrets::lock(engine).await,
        Request::Endpoints => Ok(endpoints::list(engine)),
        Request::AddEndpoint { entry, target } => endpoints::add(engine, entry, target).await,
        Request::RemoveEndpoint { entry } => endpoints::remove(engine, entry).await,
        Request::EndpointState { entry, port, problem } => {
            endpoints::told(engine, peer.process, entry, port, problem).await
        }
        Request::Mode { set } => settings::mode(engine, set).await,
        Request::Pause { minutes } => engine.begin_pause(minutes).await,
        Request::Resume => engine.end_pause().await,
        Request::Ignore { entry } => settings::ignore(engine, entry).await,
        Request::Confirm { id, allow } => attend::confirm(engine, peer, id, allow),
        Request::Quit => quit(engine).await,
        Request::Authorize { action } => {
            let text = Untrusted::new(action).visible(MAX_ACTION);
            engine.commit(engine.event(What::Command { text })).await;
            Ok(Reply::Done { text: "allowed".into() })
        }
        // They stream, and are served by `serve`.
        Request::Log(_) | Request::Attend | Request::ServeEndpoints => Err("this is streamed".into()),
    };
    outcome.unwrap_or_else(|text| Reply::Failed { text })
}

/// Ends the engine. Only what refuses more: it weakens nothing.
async fn quit(engine: &Rc<Engine>) -> Result<Reply, String> {
    engine.commit(engine.event(What::Command { text: "Firedoor switched off".into() })).await;
    switch_off(&engine.paths).map_err(|e| e.to_string())?;
    engine.end.notify_one();
    Ok(Reply::Done { text: "Firedoor is off; protected servers answer so until it is started again".into() })
}

fn status(engine: &Engine) -> Status {
    let sessions = engine
        .sessions
        .borrow()
        .values()
        .map(|s| SessionView {
            id: s.id,
            entry: s.entry.clone(),
            client: s.agent.client.name(),
            pid: s.pid,
            level: s.level.clone(),
            profile: s.profile.clone(),
            since: s.since,
            calls: s.calls.get(),
            observed: s.record.borrow().is_some(),
        })
        .collect();
    Status {
        version: env!("CARGO_PKG_VERSION").into(),
        pid: std::process::id(),
        since: engine.since,
        mode: engine.mode.get(),
        paused_until: engine.paused(),
        quieted: engine.desk.borrow().quiet().into_iter().collect(),
        pending: engine.desk.borrow().questions().len(),
        sessions,
        observe_next: Vec::new(),
        offers: engine.offers.borrow().all(),
        withheld: withheld(engine),
        watched: engine.watching.borrow().as_ref().map(|w| w.directories),
        problems: engine.problems(),
    }
}

/// Oldest first.
fn withheld(engine: &Engine) -> Vec<Withheld> {
    let mut all: Vec<Withheld> = engine.withheld.borrow().values().cloned().collect();
    all.sort_by_key(|w| w.since);
    all
}

fn pending(engine: &Engine) -> Reply {
    let mut desk = engine.desk.borrow_mut();
    let questions: Vec<_> = desk.questions().into_iter().cloned().collect();
    for question in &questions {
        desk.shown(&question.id);
    }
    Reply::Questions { questions }
}

/// Streams the log: what is stored, then, if asked for, what is written from now on.
async fn log(
    engine: &Rc<Engine>,
    query: &LogQuery,
    incoming: &mut Incoming,
    outgoing: &Outgoing,
) -> Result<(), WireError> {
    let mut news = query.follow.then(|| engine.recorder.follow());
    let mut after = 0;
    loop {
        let page = Query {
            after_seq: after,
            entry: query.server.as_ref().and_then(|s| s.parse().ok()),
            server: query.server.clone().filter(|s| s.parse::<firedoor_model::EntryId>().is_err()),
            since: query.since,
            limit: Some(PAGE),
            ..Query::default()
        };
        let rows = match engine.recorder.with(move |store| store.events(&page)).await {
            Ok(rows) => rows,
            Err(e) => return outgoing.send(&Reply::Failed { text: e.to_string() }).await,
        };
        let full = rows.len() == PAGE as usize;
        for row in rows {
            after = row.seq;
            outgoing.send(&Reply::Event(to_row(row))).await?;
        }
        if full {
            continue;
        }
        let Some(news) = &mut news else { return outgoing.send(&Reply::Done { text: String::new() }).await };
        // Whatever is new, the next page has it: also what a slow reader of the channel missed.
        tokio::select! {
            row = news.recv() => if matches!(row, Err(RecvError::Closed)) {
                return outgoing.send(&Reply::Done { text: String::new() }).await;
            },
            () = incoming.closed() => return Err(WireError::Closed),
        }
    }
}

#[cfg(test)]
mod tests {
    use firedoor_ipc::command::WantedRule;
    use firedoor_model::Mode;

    use super::*;

    #[test]
    fn what_weakens() {
        let check = |request: Request, mode: Mode, want: bool| {
            let set = Set { mode, log_days: 90, protect_new: true };
            assert_eq!(weakens(&request, set).is_some(), want, "{request:?} in {mode}");
        };
        let to = |mode| Request::Mode { set: Some(mode) };
        check(to(Mode::Watch), Mode::Balanced, true);
        check(to(Mode::Balanced), Mode::Strict, true);
        check(to(Mode::Balanced), Mode::Watch, false);
        check(to(Mode::Strict), Mode::Balanced, false);
        check(Request::Mode { set: None }, Mode::Strict, false);
        let answer = |choice| Request::Answer {
            id: firedoor_model::question::Ref("A1".into()),
            choice,
            duration: firedoor_model::question::Duration::Once,
            scope: firedoor_model::question::Scope::Tool,
            also: Vec::new(),
        };
        check(answer(Choice::Allow), Mode::Balanced, true);
        check(answer(Choice::Block), Mode::Balanced, false);
        check(Request::Authorize { action: "restore".into() }, Mode::Watch, true);
        let long = Request::Authorize { action: "\u{1b}[2J".repeat(1 << 20) };
        assert!(
            weakens(&long, Set { mode: Mode::Watch, log_days: 90, protect_new: true })
                .is_some_and(|text| text.starts_with("⟨U+001B⟩[2J") && text.len() < 3000)
        );
        check(Request::Ignore { entry: "cursor/user/fs".parse().unwrap() }, Mode::Watch, true);
        check(Request::Pause { minutes: 1 }, Mode::Watch, true);
        check(Request::Resume, Mode::Strict, false);
        check(Request::Status, Mode::Strict, false);
        let (entry, text) = ("cursor/user/fs".parse().unwrap(), |text: &str| text.to_owned());
        let route = firedoor_model::broker::Route {
            secret: text("T"),
            variable: text("V"),
            url: text("https://a.example"),
            header: text("x"),
            intercept: true,
        };
        let add = Request::AddRoute { entry, route };
        let said = weakens(&add, Set { mode: Mode::Strict, log_days: 90, protect_new: true });
        assert!(said.is_some_and(|said| said.contains("https://a.example") && said.contains("encrypted connections")));
        check(add, Mode::Strict, true);
        check(Request::RemoveRoute { entry: "a/b/c".parse().unwrap(), secret: text("T") }, Mode::Strict, true);
        check(Request::Routes, Mode::Watch, false);
        check(Request::Unlock { key: None }, Mode::Watch, false);
        check(Request::Lock, Mode::Watch, false);
        check(Request::RestoreRule { id: 1 }, Mode::Watch, true);
        check(Request::RuleFromRow { seq: 1, effect: Choice::Allow }, Mode::Watch, true);
        check(Request::RuleFromRow { seq: 1, effect: Choice::Block }, Mode::Watch, false);
        for (days, want) in [(Some(30), true), (Some(90), false), (Some(365), false), (None, false)] {
            check(Request::Settings { log_days: days, protect_new: None }, Mode::Watch, want);
        }
        for (on, want) in [(Some(false), true), (Some(true), false)] {
            check(Request::Settings { log_days: None, protect_new: on }, Mode::Watch, want);
        }
        let rule = |effect| WantedRule { effect, matches: Default::default(), expires: None };
        for (rules, want) in
            [(vec![rule(Choice::Block)], false), (vec![rule(Choice::Block), rule(Choice::Allow)], true)]
        {
            check(Request::AddRules { rules }, Mode::Watch, want);
        }
        check(Request::Confirm { id: 1, allow: true }, Mode::Watch, false);
    }
}

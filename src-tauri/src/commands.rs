//! What the windows may ask for. Each argument is checked: the webview is untrusted.

use std::time::Instant;

use firedoor_ipc::command::Request;
use firedoor_model::Ability;
use tauri::{AppHandle, Manager, State, WebviewWindow, ipc::Channel};

use crate::{
    answering::Answered,
    changes::ChangeError,
    known::{Known, lock},
    link::Link,
    notice, processes,
    settings::NewRule,
    tray::Hosts,
    view::{
        AboutView, ActionView, ActivityView, AnswerView, AskedView, ChoiceView, CountsView, ExportView,
        FoundClientView, GrantKind, GrantView, ModeView, OverviewView, PlanView, ProgressView, RowsQuery, RulesView,
        SecretsView, ServerView, SettingsView, VerifiedView, VisitView, WholeArgumentsView,
    },
    windows,
};

/// A sentence for the user.
type Told<T> = Result<T, String>;

/// The row has left the list, or never offered anything.
const NO_OFFER: &str = "This row offers nothing to grant any more. Use firedoor grants add on the command line.";

fn told(e: impl std::error::Error) -> String {
    e.to_string()
}

/// The question to show; the window ends when there is none.
#[tauri::command(async)]
pub fn question(app: AppHandle, known: State<'_, Known>) -> Told<Option<AskedView>> {
    let given_up = || lock(&known.asking).given_up().map(str::to_owned).collect::<Vec<_>>();
    let before = given_up();
    let asked = known.asked().map_err(told)?;
    if given_up() != before {
        windows::problems(&app);
    }
    if asked.is_none() {
        windows::close_prompt(&app);
    }
    Ok(asked)
}

/// All arguments of a call of the question on screen, by its place.
#[tauri::command(async)]
pub fn question_arguments(known: State<'_, Known>, nonce: &str, call: usize) -> Told<WholeArgumentsView> {
    known.arguments(nonce, call).map_err(told)
}

/// Answers the question on screen. Returns what was done, in a sentence.
#[tauri::command(async)]
pub fn answer(app: AppHandle, known: State<'_, Known>, nonce: &str, answer: AnswerView) -> Told<String> {
    let Answered { said, check } = known.answer(nonce, answer, Instant::now()).map_err(told)?;
    if !check.is_empty() {
        crate::app::in_background(&app, move |app| {
            let known = app.state::<Known>();
            known.scan();
            crate::tray::refresh(app);
            check.iter().for_each(|entry| notice::checked(app, &crate::check::check(entry)));
        });
    }
    Ok(said)
}

/// Puts the question on screen off.
#[tauri::command(async)]
pub fn later(app: AppHandle, known: State<'_, Known>, nonce: &str) -> Told<()> {
    let put_off = lock(&known.asking).put_off(nonce).map_err(told)?;
    crate::app::put_off(&known, put_off);
    let waiting = lock(&known.heard).waiting.clone();
    if lock(&known.asking).waits(&waiting) {
        windows::prompt(&app);
    } else {
        windows::close_prompt(&app);
    }
    Ok(())
}

/// The question's text is this tall.
#[tauri::command(async)]
pub fn fit(window: WebviewWindow, height: f64) -> Told<()> {
    windows::fit(&window, height).map_err(told)
}

/// The view that the tray asked for since the last time.
#[tauri::command(async)]
pub fn wanted_view(wanted: State<'_, windows::Wanted>) -> Option<windows::View> {
    wanted.take()
}

/// The state in one piece.
#[tauri::command(async)]
pub fn overview(known: State<'_, Known>, hosts: State<'_, Hosts>) -> OverviewView {
    let block = lock(&known.activity).last_block().cloned();
    let mut unseen: Vec<String> = lock(&known.asking).given_up().map(str::to_owned).collect();
    unseen.extend(lock(&known.untold).values().cloned());
    let view = OverviewView::new(&lock(&known.heard), &unseen, hosts.show_icons(), block, known.clients);
    OverviewView { missing: missing(), ..view }
}

/// What this system does not do yet.
fn missing() -> Vec<String> {
    let abilities = [Ability::Observing, Ability::Listening, Ability::Brokering].map(|ability| ability.here().err());
    let own = [notice::MISSING, processes::MISSING, windows::PAGES_MISSING];
    own.into_iter().chain(abilities).flatten().map(|missing| missing.to_string()).collect()
}

/// What is configured on this machine.
#[tauri::command(async)]
pub fn servers(app: AppHandle, known: State<'_, Known>) -> Vec<FoundClientView> {
    let found = FoundClientView::all(&known.scan());
    crate::tray::refresh(&app);
    found
}

/// What protecting or restoring would change: everything, or the entries named.
#[tauri::command(async)]
pub fn plan(known: State<'_, Known>, action: ActionView, entries: Option<Vec<String>>) -> Told<PlanView> {
    known.plan(action, entries.as_deref()).map_err(told)
}

/// Carries out what was shown last, in the files chosen by their place.
#[tauri::command(async)]
pub fn carry_out(app: AppHandle, nonce: &str, files: Vec<u32>, progress: Channel<ProgressView>) -> Told<()> {
    let known = app.state::<Known>();
    // A window that was closed meanwhile misses the progress; the work is done all the same.
    let done = known.carry_out(nonce, &files, |step| drop(progress.send(step)));
    known.scan();
    crate::tray::refresh(&app);
    done.map_err(|e: ChangeError| e.to_string())
}

/// A piece of the log.
#[tauri::command(async)]
pub fn log(known: State<'_, Known>, query: RowsQuery) -> Told<ActivityView> {
    known.log(query).map_err(told)
}

/// Tool calls of the last days.
#[tauri::command(async)]
pub fn counts(known: State<'_, Known>, days: u32) -> Told<CountsView> {
    known.counts(days).map_err(told)
}

/// Rules, and what could become one.
#[tauri::command(async)]
pub fn rules(known: State<'_, Known>) -> Told<RulesView> {
    known.rules().map_err(told)
}

/// Adds a rule.
#[tauri::command(async)]
pub fn add_rule(known: State<'_, Known>, rule: NewRule) -> Told<String> {
    known.add_rule(rule).map_err(told)
}

/// Removes a rule.
#[tauri::command(async)]
pub fn remove_rule(known: State<'_, Known>, id: i64) -> Told<String> {
    Link::settle(&known.paths, &Request::RemoveRule { id }).map_err(told)
}

/// Puts a removed rule back.
#[tauri::command(async)]
pub fn restore_rule(known: State<'_, Known>, id: i64) -> Told<String> {
    Link::settle(&known.paths, &Request::RestoreRule { id }).map_err(told)
}

/// Makes a rule of a row: allow marks what was found there as wrong, block blocks the tool.
#[tauri::command(async)]
pub fn rule_from_row(known: State<'_, Known>, seq: u64, effect: ChoiceView) -> Told<String> {
    Link::settle(&known.paths, &Request::RuleFromRow { seq, effect: effect.into() }).map_err(told)
}

/// Adds a rule that was suggested.
#[tauri::command(async)]
pub fn accept_suggestion(known: State<'_, Known>, id: &str) -> Told<String> {
    known.accept_suggestion(id).map_err(told)
}

/// Settings, one of them perhaps new.
#[tauri::command(async)]
pub fn settings(known: State<'_, Known>, log_days: Option<u32>, protect_new: Option<bool>) -> Told<SettingsView> {
    known.settings(log_days, protect_new).map_err(told)
}

/// Another mode.
#[tauri::command(async)]
pub fn set_mode(known: State<'_, Known>, mode: ModeView) -> Told<()> {
    known.set_mode(mode).map_err(told)
}

/// Checks the log.
#[tauri::command(async)]
pub fn verify_log(known: State<'_, Known>) -> Told<VerifiedView> {
    known.verify_log().map_err(told)
}

/// Writes the log or the rules to a file of the user's. Returns where.
#[tauri::command(async)]
pub fn export(known: State<'_, Known>, what: ExportView) -> Told<String> {
    known.export(what).map(|file| crate::settings::shown(&file, &known)).map_err(told)
}

/// Version and licences.
#[tauri::command(async)]
pub fn about() -> AboutView {
    crate::settings::about()
}

/// Grants the folder that a row of the log offers. The page names the row only; what it opens is what the engine found.
#[tauri::command(async)]
pub fn allow_folder(known: State<'_, Known>, seq: u64, write: bool) -> Told<String> {
    let offer = crate::activity::offer(&known, seq).map_err(told)?.ok_or(NO_OFFER)?;
    let said = Link::settle(&known.paths, &offer.grant(write)).map_err(told)?;
    Ok(format!("{said}: restart its client"))
}

/// Takes that grant back.
#[tauri::command(async)]
pub fn close_folder(known: State<'_, Known>, seq: u64) -> Told<String> {
    let offer = crate::activity::offer(&known, seq).map_err(told)?.ok_or(NO_OFFER)?;
    Link::settle(&known.paths, &offer.take_back()).map_err(told)
}

/// Everything about one server.
#[tauri::command(async)]
pub fn server(known: State<'_, Known>, entry: &str) -> Told<ServerView> {
    known.server(entry).map_err(told)
}

/// Grants a server more. The engine refuses what must stay closed.
#[tauri::command(async)]
pub fn add_grant(known: State<'_, Known>, entry: &str, kind: GrantKind, text: &str) -> Told<String> {
    known.add_grant(entry, kind, text).map_err(told)
}

/// Takes a grant away.
#[tauri::command(async)]
pub fn remove_grant(known: State<'_, Known>, entry: &str, grant: GrantView) -> Told<String> {
    known.remove_grant(entry, &grant).map_err(told)
}

/// Accepts the change of a definition, as it was shown.
#[tauri::command(async)]
pub fn accept_change(known: State<'_, Known>, entry: &str, seen: &str) -> Told<String> {
    known.accept_change(entry, seen).map_err(told)
}

/// Switches observing of a server's next run.
#[tauri::command(async)]
pub fn observe(known: State<'_, Known>, entry: &str, on: bool) -> Told<String> {
    known.observe(entry, on).map_err(told)
}

/// Ends a running server.
#[tauri::command(async)]
pub fn stop_server(known: State<'_, Known>, entry: &str) -> Told<String> {
    known.stop(entry).map_err(told)
}

/// Whether the app starts with the login; another choice, or none.
#[tauri::command(async)]
pub fn login(known: State<'_, Known>, on: Option<bool>) -> Told<bool> {
    known.login(on).map_err(told)
}

/// Does what may wait for a person for minutes, apart from what answers the windows.
async fn patiently<T: Send + 'static>(
    app: AppHandle,
    work: impl FnOnce(&Known) -> Told<T> + Send + 'static,
) -> Told<T> {
    let done = tauri::async_runtime::spawn_blocking(move || work(&app.state::<Known>())).await;
    done.unwrap_or_else(|e| Err(e.to_string()))
}

/// Logs in at a remote server; says where the browser has to go, and waits until the user has agreed to that.
#[tauri::command]
pub async fn sign_in(app: AppHandle, entry: String, visit: Channel<VisitView>) -> Told<String> {
    // A window that was closed meanwhile cannot agree, and then it ends by itself.
    let show = move |to| drop(visit.send(to));
    patiently(app, move |known| known.sign_in(&entry, &crate::changes::keychain(&known.paths), show).map_err(told))
        .await
}

/// The user agrees to go there, or does not.
#[tauri::command(async)]
pub fn visit(known: State<'_, Known>, nonce: &str, go: bool) -> Told<()> {
    known.visit(nonce, go).map_err(told)
}

/// Secrets by their names. The keychain may ask for its password.
#[tauri::command]
pub async fn secrets(app: AppHandle) -> Told<SecretsView> {
    patiently(app, |known| known.secrets(&crate::changes::keychain(&known.paths)).map_err(told)).await
}

/// Removes a secret from the keychain.
#[tauri::command]
pub async fn remove_secret(app: AppHandle, id: String) -> Told<()> {
    patiently(app, move |known| known.remove_secret(&id, &crate::changes::keychain(&known.paths)).map_err(told)).await
}

/// Asks nothing for a while.
#[tauri::command(async)]
pub fn pause(known: State<'_, Known>, minutes: u32) -> Told<String> {
    Link::settle(&known.paths, &Request::Pause { minutes }).map_err(told)
}

/// Asks again.
#[tauri::command(async)]
pub fn resume(known: State<'_, Known>) -> Told<String> {
    Link::settle(&known.paths, &Request::Resume).map_err(told)
}

/// Shows the questions that wait.
#[tauri::command(async)]
pub fn open_question(app: AppHandle) {
    windows::recall_prompt(&app);
}

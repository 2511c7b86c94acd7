//! `firedoor-remote`: stands in the place of a server that is somewhere else. JSON-RPC lines on stdin and stdout, as any
//! server has them; MCP's HTTP transports on the other side.
//!
//! It is started and confined like every server: it reaches the host of its entry and nothing else, reads no file of the
//! user's, and what passes through it is judged by the session. So what parses a stranger's HTTP and TLS holds nothing
//! but that stranger's own messages. Started with `--endpoints` or `--broker` it is something else: see
//! [`endpoint`] and [`broker`].
//!
//! Architecture invariant: a message's bytes are passed on as they came; only line breaks between tokens become spaces.

mod bridge;
mod broker;
#[cfg_attr(windows, expect(dead_code, reason = "clients are not listened for there"))]
mod door;
#[cfg(unix)]
mod endpoint;
#[cfg(windows)]
#[path = "endpoint/missing.rs"]
mod endpoint;
mod events;
mod exchange;
mod flight;
mod http;
mod listener;
mod login;
mod mirror;
mod output;
mod patience;
#[cfg_attr(windows, path = "renewal/windows.rs")]
mod renewal;
mod session;
mod streams;
mod sys;

use std::{ffi::OsString, io, process::ExitCode, rc::Rc};

use firedoor_model::{
    broker::BROKER,
    login::SIGN_IN,
    remote::{Instructions, MAX_INSTRUCTIONS},
    wire::{Body, Frame},
};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, BufReader},
    task::LocalSet,
};

use bridge::Bridge;
use output::Output;
use sys::Ends;

/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

fn main() -> ExitCode {
    let argument = std::env::args_os().nth(1);
    if argument.as_ref().is_some_and(|a| a == "--version") {
        say(&format!("firedoor-remote {}", env!("CARGO_PKG_VERSION")));
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(4).build();
    let outcome = runtime.map_err(|e| format!("the event loop cannot be started: {e}")).and_then(|runtime| {
        let local = LocalSet::new();
        let outcome = match argument.as_ref().is_some_and(|a| a == endpoint::ENDPOINTS) {
            true => local.block_on(&runtime, endpoint::serve()),
            false => local.block_on(&runtime, serve(argument)),
        };
        // A look-up of a name that still runs is not waited for.
        runtime.shutdown_background();
        outcome
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            say(&why);
            ExitCode::FAILURE
        }
    }
}

async fn serve(argument: Option<OsString>) -> Result<(), String> {
    let system = |what: &'static str| move |e: io::Error| format!("{what} cannot be used: {e}");
    let input = sys::stdin().and_then(sys::reader).map_err(system("stdin"))?;
    let output = sys::stdout().map_err(system("stdout"))?;
    let mut ends = Ends::new().map_err(system("signals"))?;

    let mut input = BufReader::with_capacity(CHUNK, input);
    let is = |other: &str| argument.as_ref().is_some_and(|given| given == other);
    if is(SIGN_IN) || is(BROKER) {
        let work = async move {
            match is(BROKER) {
                true => broker::serve(input).await,
                false => login::serve(input).await,
            }
        };
        return tokio::select! {
            outcome = work => outcome,
            () = ends.asked() => Ok(()),
        };
    }
    let output = Output::new(output).map_err(system("stdout"))?;
    let instructions = instructions(&mut input).await?;
    let bridge = match Bridge::new(&instructions, output.clone()) {
        Ok(bridge) => bridge,
        Err(e) => {
            say(&e.to_string());
            refuse(input, &output, &e.to_string()).await;
            return Ok(());
        }
    };
    let outcome = tokio::select! {
        outcome = run(&bridge, input) => outcome,
        () = ends.asked() => Ok(()),
    };
    bridge.leave().await;
    outcome
}

async fn run(bridge: &Rc<Bridge>, input: impl AsyncBufRead + Unpin) -> Result<(), String> {
    bridge.run(input).await
}

/// The first line says what to do.
async fn instructions(input: &mut (impl AsyncBufRead + Unpin)) -> Result<Instructions, String> {
    const WRONG: &str = "this program is started by firedoor-shim: see `firedoor protect`";
    let mut line = Vec::new();
    let count = input.take(MAX_INSTRUCTIONS as u64).read_until(b'\n', &mut line).await;
    count.map_err(|e| format!("stdin cannot be read: {e}"))?;
    serde_json::from_slice(&line).map_err(|_| WRONG.to_owned())
}

/// Answers each request with the reason why there is no server.
async fn refuse(mut input: impl AsyncBufRead + Unpin, output: &Output, why: &str) {
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line).await.is_ok_and(|count| count > 0) {
        for message in Frame::parse(line.trim_ascii()).iter().flat_map(Frame::messages) {
            if let Body::Request { id, .. } = message.body {
                output.send(bridge::error(id, why));
            }
        }
        output.room().await;
        line.clear();
    }
    output.drained().await;
}

/// One line for the client's log of the server.
fn say(text: &str) {
    use std::io::Write;
    // Nothing is left to be done when even that fails.
    let _ = writeln!(io::stderr(), "firedoor: {text}");
}

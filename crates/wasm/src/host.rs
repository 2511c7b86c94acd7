//! One run of one module.

use std::{ffi::OsString, path::PathBuf};

use wasmtime::{
    Config, Engine, Linker, Module, ResourceLimiter, Store, StoreLimits, Trap,
    component::{self, Component, ResourceTable},
};
use wasmtime_wasi::{
    FsPerms, I32Exit, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView,
    p1::{self, WasiP1Ctx},
    p2::{self, bindings::sync::Command},
};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::{
    arguments::RunOptions,
    cache::{self, Code},
    error::RunError,
    http::{self, Requests},
    limits::{self, Output, Stream},
};

/// Most handles that a preview 2 program may hold. The largest, requests, hold some 200 KiB of this process's memory.
const MAX_HANDLES: usize = 10_000;

/// Runs the module to its end; what it returned.
pub fn run(options: &RunOptions) -> Result<u8, RunError> {
    limits::open_files(options.files)?;
    let path = PathBuf::from(options.module.first().cloned().unwrap_or_default());
    let engine = engine(options)?;
    let code = cache::load(&engine, &path, options.cache.as_deref())?;
    let context = context(options)?;
    // Until the end of this function.
    let _watch = options.timeout.map(|limit| limits::watch(engine.clone(), limit)).transpose()?;
    let limits = limits::store(options.memory);
    let ended = match code {
        Code::Module(module) => {
            let mut context = context;
            let state = State { wasi: context.build_p1(), limits };
            preview1(&module, store(&engine, state, options)?)
        }
        Code::Component(component) => {
            let mut context = context;
            let mut table = ResourceTable::new();
            table.set_max_capacity(MAX_HANDLES);
            let requests = Requests::new(options.net);
            let state =
                State { wasi: Preview2 { context: context.build(), table, http: http::context(), requests }, limits };
            preview2(&component, store(&engine, state, options)?)
        }
    };
    match ended {
        Ok(()) => Ok(0),
        Err(Ended::NotStarted(e)) => Err(RunError::Instantiate { path, reason: format!("{e:#}") }),
        Err(Ended::Failed(e)) => outcome(&e, options),
    }
}

fn engine(options: &RunOptions) -> Result<Engine, RunError> {
    let mut config = Config::new();
    config.epoch_interruption(options.timeout.is_some());
    config.consume_fuel(options.fuel.is_some());
    Engine::new(&config).map_err(|e| RunError::Runtime(format!("{e:#}")))
}

/// What the module is given: its arguments, the named variables, the named directories, our standard streams.
fn context(options: &RunOptions) -> Result<WasiCtxBuilder, RunError> {
    let mut context = WasiCtxBuilder::new();
    // There is one module and one thread: handing each file operation to another thread only costs time.
    context.allow_blocking_current_thread(true);
    context.inherit_stdin();
    context.stdout(Output::new(Stream::Out, options.output));
    context.stderr(Output::new(Stream::Err, options.output));
    let mut words = options.module.iter();
    let file = words.next().map(PathBuf::from).unwrap_or_default();
    let own = options.argv0.clone().unwrap_or_else(|| text(file.file_name().unwrap_or_default().to_owned()));
    context.arg(own);
    for word in words {
        context.arg(text(word.clone()));
    }
    for variable in &options.env {
        if let Some((name, value)) = variable.split_once('=') {
            context.env(name, value);
        } else if let Some(value) = std::env::var_os(variable) {
            context.env(variable, text(value));
        }
    }
    let writable = options.write.iter().map(|d| (d, FsPerms::ReadWrite));
    for (directory, access) in writable.chain(options.read.iter().map(|d| (d, FsPerms::ReadOnly))) {
        context.preopened_dir(&directory.host, &directory.guest, access).map_err(|e| RunError::Io {
            path: directory.host.clone(),
            what: "open the directory",
            source: std::io::Error::other(format!("{e:#}")),
        })?;
    }
    context.allow_tcp(options.net).allow_udp(options.net).allow_ip_name_lookup(options.net);
    if options.net {
        // Every address: the sandbox judges them.
        context.inherit_network();
    }
    Ok(context)
}

/// Arguments and variables of WASI are Unicode.
fn text(raw: OsString) -> String {
    raw.to_string_lossy().into_owned()
}

struct State<W> {
    wasi: W,
    limits: StoreLimits,
}

struct Preview2 {
    context: WasiCtx,
    table: ResourceTable,
    http: WasiHttpCtx,
    requests: Requests,
}

impl WasiView for State<Preview2> {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi.context, table: &mut self.wasi.table }
    }
}

impl WasiHttpView for State<Preview2> {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        let Preview2 { table, http, requests, .. } = &mut self.wasi;
        WasiHttpCtxView { hooks: requests, table, ctx: http }
    }
}

fn store<W: 'static>(engine: &Engine, state: State<W>, options: &RunOptions) -> Result<Store<State<W>>, RunError> {
    let mut store = Store::new(engine, state);
    store.limiter(|state| -> &mut dyn ResourceLimiter { &mut state.limits });
    if options.timeout.is_some() {
        store.set_epoch_deadline(1);
    }
    if let Some(fuel) = options.fuel {
        store.set_fuel(fuel).map_err(|e| RunError::Runtime(format!("{e:#}")))?;
    }
    Ok(store)
}

/// Why a module did not come to its end by itself.
enum Ended {
    NotStarted(wasmtime::Error),
    Failed(wasmtime::Error),
}

fn preview1(module: &Module, mut store: Store<State<WasiP1Ctx>>) -> Result<(), Ended> {
    let mut linker = Linker::new(store.engine());
    p1::add_to_linker_sync(&mut linker, |state: &mut State<WasiP1Ctx>| &mut state.wasi).map_err(Ended::NotStarted)?;
    let linked = linker.instantiate_pre(module).map_err(Ended::NotStarted)?;
    // From here on its own code may run: a start function.
    let instance = linked.instantiate(&mut store).map_err(Ended::Failed)?;
    let start = instance.get_typed_func::<(), ()>(&mut store, "_start").map_err(Ended::NotStarted)?;
    start.call(&mut store, ()).map_err(Ended::Failed)
}

fn preview2(component: &Component, mut store: Store<State<Preview2>>) -> Result<(), Ended> {
    let mut linker = component::Linker::new(store.engine());
    p2::add_to_linker_sync(&mut linker).map_err(Ended::NotStarted)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_sync(&mut linker).map_err(Ended::NotStarted)?;
    linker.instantiate_pre(component).map_err(Ended::NotStarted)?;
    let command = Command::instantiate(&mut store, component, &linker).map_err(Ended::Failed)?;
    match command.wasi_cli_run().call_run(&mut store) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(())) => Err(Ended::Failed(I32Exit(1).into())),
        Err(e) => Err(Ended::Failed(e)),
    }
}

/// What an error of the runtime means: the module's own exit, a limit, or a fault of its own.
fn outcome(error: &wasmtime::Error, options: &RunOptions) -> Result<u8, RunError> {
    if let Some(I32Exit(code)) = error.downcast_ref::<I32Exit>() {
        // Exit codes have eight bits (_exit(2)).
        return Ok((code & 0xff) as u8);
    }
    Err(match (error.downcast_ref::<Trap>(), options.timeout) {
        (Some(Trap::Interrupt), Some(limit)) => RunError::Timeout(limit),
        (Some(Trap::OutOfFuel), _) => RunError::Stopped("it used up its fuel".into()),
        (Some(Trap::StackOverflow), _) => RunError::Stopped("it called itself too deep: its stack is full".into()),
        _ => RunError::Stopped(format!("{:#}", error.root_cause())),
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::arguments::{Arguments, Command};

    /// Runs a text with these options.
    fn check(wat: &str, options: &[&str], want: Result<u8, (u8, &str)>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.wasm");
        std::fs::write(&path, wat::parse_str(wat).unwrap()).unwrap();
        let words = [&["firedoor-wasm", "run"], options, &[path.to_str().unwrap()]].concat();
        let Command::Run(run_options) = Arguments::parse_from(words).command;
        match (run(&run_options), want) {
            (Ok(code), Ok(want)) => assert_eq!(code, want, "{wat}"),
            (Err(e), Err((code, text))) => {
                assert_eq!(e.code(), code, "{e}");
                assert!(e.to_string().contains(text), "{text:?} in {e}");
            }
            (got, want) => panic!("{got:?}, not {want:?}: {wat}"),
        }
    }

    /// A preview 2 command whose `run` returns this: 0 is well.
    fn component(result: i32) -> String {
        format!(
            r#"(component
                (core module $m (func (export "run") (result i32) i32.const {result}))
                (core instance $i (instantiate $m))
                (func $run (result (result)) (canon lift (core func $i "run")))
                (instance $out (export "run" (func $run)))
                (export "wasi:cli/run@0.2.0" (instance $out)))"#
        )
    }

    #[test]
    fn modules_and_components_end() {
        let exit = r#"(module (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
            (memory (export "memory") 1) (func (export "_start") i32.const 7 call $exit))"#;
        check(exit, &[], Ok(7));
        check("(module (func (export \"_start\")))", &[], Ok(0));
        check(&component(0), &[], Ok(0));
        check(&component(1), &[], Ok(1));
    }

    #[test]
    fn what_cannot_start_says_why() {
        check("(module)", &[], Err((2, "_start")));
        check(r#"(module (import "env" "f" (func)) (func (export "_start")))"#, &[], Err((2, "env")));
        check("(component)", &[], Err((134, "wasi:cli/run")));
        check("(module (func (export \"_start\")))", &["--dir", "/nonexistent"], Err((2, "open the directory")));
    }

    #[test]
    fn limits_hold() {
        let looping = "(module (func (export \"_start\") (loop br 0)))";
        check(looping, &["--timeout", "50"], Err((124, "50 ms")));
        check(looping, &["--fuel", "10000"], Err((134, "fuel")));
        check("(module (func $f (export \"_start\") call $f))", &[], Err((134, "stack is full")));
        check("(module (func (export \"_start\") unreachable))", &[], Err((134, "unreachable")));
        check("(module (func $f unreachable) (start $f))", &[], Err((134, "unreachable")));
        check("(module (memory 100) (func (export \"_start\")))", &["--memory", "65536"], Err((134, "memory")));
        check("(module (table 2000000 funcref) (func (export \"_start\")))", &[], Err((134, "table")));
    }
}

//! Starts a server as the engine would, with `confine` of firedoor-sandbox as the shim:
//!
//! `launch CONFINE SCRATCH PROXY -- COMMAND ARGUMENT…`
//!
//! CONFINE is the built example of firedoor-sandbox, SCRATCH a directory for the steps, PROXY the address of a CONNECT
//! proxy (user `u`, password `t`), or `none`. The entry is `example/user/server`; notes go to standard error.

use std::{
    env,
    error::Error,
    fs,
    io::Write as _,
    path::Path,
    process::{Command, ExitCode, Stdio},
    time::{Instant, SystemTime},
};

use firedoor_launch::{Context, Plan, Profiles, ProxyAddress, UserGrants, plan};
use firedoor_model::{
    EntryId, Millis,
    launch::{LaunchRequest, Step},
    paths::Paths,
};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args: Vec<_> = env::args_os().skip(1).collect();
    let [confine, scratch, proxy, _, program, rest @ ..] = args.as_slice() else {
        return Err("usage: launch CONFINE SCRATCH PROXY -- COMMAND ARGUMENT…".into());
    };
    let paths = Paths::from_env(|n| env::var_os(n))?;
    let (profiles, problems) = Profiles::load(&paths.config.join("profiles"));
    let mut log = std::io::stderr();
    for problem in problems {
        writeln!(log, "{problem}")?;
    }
    let request = LaunchRequest {
        entry: EntryId::new("example", "user", "server")?,
        program: program.clone(),
        args: rest.to_vec(),
        cwd: env::current_dir()?,
        env: env::vars_os().collect(),
    };
    let proxy = proxy.to_str().and_then(|p| p.parse().ok());
    let proxy = proxy.map(|address| ProxyAddress { address, user: "u".into(), token: "t".into() });
    let now = || {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    };
    let user = UserGrants::default();
    let ask = || {
        let start = Instant::now();
        let context = Context { proxy: proxy.clone(), ..Context::new(&paths, &profiles, &user, now()) };
        let plan = plan(&request, &context);
        (plan, start.elapsed())
    };
    let confined = |step: &Step| -> Result<Command, Box<dyn Error>> {
        let file = Path::new(scratch).join("step.json");
        fs::write(&file, serde_json::to_vec(step)?)?;
        let mut command = Command::new(confine);
        command.arg("run").arg(file);
        Ok(command)
    };
    loop {
        let (answer, took) = ask();
        writeln!(log, "planned in {took:?}")?;
        match answer? {
            Plan::Install(install) => {
                writeln!(log, "{install:?}")?;
                let start = Instant::now();
                // The server's standard input is not the install's.
                let status = confined(&install.step)?.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
                writeln!(log, "install: {status} in {:?}", start.elapsed())?;
                if status.success() {
                    install.done(now())?;
                } else {
                    install.failed(now())?;
                    if install.required {
                        return Ok(ExitCode::FAILURE);
                    }
                }
            }
            Plan::Run(run) => {
                writeln!(log, "{:?} {:?} {:?}", run.identity, run.profile, run.notes)?;
                let status = confined(&run.step)?.status()?;
                return Ok(ExitCode::from(u8::try_from(status.code().unwrap_or(125)).unwrap_or(125)));
            }
        }
    }
}

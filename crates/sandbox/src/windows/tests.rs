use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use firedoor_model::launch::{Access, Confinement, Grant, Network, Step};

use super::*;
use crate::{Exit, Launch, Level, SpawnError, Stderr};

fn system(program: &str) -> PathBuf {
    Path::new(&std::env::var_os("SystemRoot").unwrap()).join("system32").join(program)
}

fn step(program: PathBuf, args: &[&str]) -> Step {
    let kept = ["SystemRoot", "PATH", "TEMP", "ComSpec"];
    let env = kept.iter().filter_map(|name| Some(((*name).into(), std::env::var_os(name)?)));
    let confinement = Confinement {
        grants: Vec::new(),
        network: Network::None,
        protected: Default::default(),
        sockets: Vec::new(),
        own: Vec::new(),
        limits: Default::default(),
    };
    let args = args.iter().map(Into::into).collect();
    Step { program, args, env: env.collect(), cwd: std::env::temp_dir(), confinement }
}

/// Starts it; what it is told and what it says.
fn started(step: &Step) -> Result<(Tree, io::PipeWriter, io::PipeReader), SpawnError> {
    let ((stdin, told), (said, stdout)) = (io::pipe().unwrap(), io::pipe().unwrap());
    let stderr = Stderr::Fd(File::options().write(true).open("NUL").unwrap().into());
    let tree = spawn(Launch { step, stdin: stdin.into(), stdout: stdout.into(), stderr, observe: false })?;
    Ok((tree, told, said))
}

#[test]
fn a_server_gets_its_streams_arguments_and_environment_and_nothing_else() {
    let mut step = step(system("cmd.exe"), &["/d", "/q", "/c", "echo %GIVEN%& set /p line=& echo end"]);
    step.env.push(("GIVEN".into(), "from us".into()));
    let (mut tree, mut told, mut said) = started(&step).unwrap();
    told.write_all(b"x\r\n").unwrap();
    drop(told);
    let mut text = String::new();
    said.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("from us") && text.trim_end().ends_with("end"), "{text:?}");
    assert_eq!(tree.wait().unwrap(), Exit::Code(0));
    assert_eq!(tree.outcome().level, Level::Writes);
    assert!(tree.outcome().missing.len() >= 3, "what is not confined is said");
    step.args = ["/d", "/c", "exit 7"].map(Into::into).to_vec();
    assert_eq!(started(&step).unwrap().0.wait().unwrap(), Exit::Code(7));
}

#[test]
fn what_a_server_started_ends_with_it() {
    // The child waits for its input, which nobody gives.
    let (mut tree, told, mut said) =
        started(&step(system("cmd.exe"), &["/d", "/q", "/c", "start /b cmd /d /q /c \"set /p line=\" & echo up"]))
            .unwrap();
    let mut up = [0; 2];
    said.read_exact(&mut up).unwrap();
    assert_eq!(&up, b"up");
    assert_eq!(tree.wait().unwrap(), Exit::Code(0));
    assert_eq!(tree.job.running().unwrap(), 0);
    drop(told);
    let (tree, told, mut said) =
        started(&step(system("cmd.exe"), &["/d", "/q", "/c", "echo up& set /p line="])).unwrap();
    said.read_exact(&mut up).unwrap();
    let exited = tree.exited().unwrap();
    let begun = Instant::now();
    drop(tree);
    exited.wait().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(60));
    drop(told);
}

#[test]
fn what_cannot_be_started_is_said() {
    let why = |program: &str| started(&step(program.into(), &[])).map(drop).unwrap_err().to_string();
    assert!(why("cmd.exe").contains("absolute"), "{}", why("cmd.exe"));
    for name in
        [r"C:\x\npx.CMD", r"C:\x\npx.cmd.", r"C:\x\npx.cmd ", r"C:\x\a.bat::$DATA", r"C:\x\a.exe:b.exe", r"C:\x\a"]
    {
        assert!(why(name).contains("cannot be started safely"), "{name}: {}", why(name));
    }
    assert!(why(r"C:\nowhere\x.exe").contains("is the program there"));
    let mut nowhere = step(system("cmd.exe"), &[]);
    nowhere.cwd = r"C:\nowhere".into();
    assert!(matches!(started(&nowhere).map(drop), Err(SpawnError::Cwd { .. })));
    let mut named = step(system("cmd.exe"), &[]);
    named.env.push(("A=B".into(), "c".into()));
    assert!(matches!(started(&named).map(drop), Err(SpawnError::Text(_))));
    named.env.pop();
    named.confinement.grants.push(Grant { path: "relative".into(), access: Access::Write });
    assert!(matches!(started(&named).map(drop), Err(SpawnError::RelativeGrant(_))));
}

#[test]
fn what_is_granted_and_not_there_is_skipped() {
    let granted = std::env::temp_dir().join(format!("firedoor-granted-{}", std::process::id()));
    std::fs::create_dir(&granted).unwrap();
    let mut step = step(system("cmd.exe"), &["/d", "/c", "echo x>made"]);
    step.cwd = granted.clone();
    for path in [granted.clone(), granted.join("nothing")] {
        step.confinement.grants.push(Grant { path, access: Access::Write });
    }
    let (mut tree, ..) = started(&step).unwrap();
    assert_eq!(tree.wait().unwrap(), Exit::Code(0));
    assert_eq!(tree.outcome().skipped, [granted.join("nothing")]);
    assert!(granted.join("made").is_file());
    // Once more: it is named already.
    assert_eq!(started(&step).unwrap().0.wait().unwrap(), Exit::Code(0));
    std::fs::remove_dir_all(&granted).unwrap();
}

// Not under wine, which honours no restricted token: tests/windows/wine.py.
#[test]
fn the_system_keeps_a_restricted_token_from_writing() {
    assert!(matches!(doctor().level, Level::Writes));
    assert!(doctor().missing.iter().all(|what| !what.contains("restricted tokens")), "{:?}", doctor().missing);
    let closed = std::env::temp_dir().join(format!("firedoor-closed-{}", std::process::id()));
    std::fs::create_dir(&closed).unwrap();
    let mut step = step(system("cmd.exe"), &["/d", "/c", "echo x>made"]);
    step.cwd = closed.clone();
    assert_ne!(started(&step).unwrap().0.wait().unwrap(), Exit::Code(0));
    assert!(!closed.join("made").exists());
    std::fs::remove_dir_all(&closed).unwrap();
}

//! Where secrets are kept: `firedoor secrets keep-in-file | keep-in-keychain | unlock | lock`.

use std::{
    env,
    io::{self, IsTerminal as _},
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use firedoor_ipc::command::{Reply, Request};
use firedoor_store::{Moved, Opener, Place};

use crate::{
    changes::{authorize, share},
    engine::{Engine, unexpected},
    failure::Failure,
    keychain, output,
    typed::typed_line,
};

/// Keeps secrets in a file from now on.
pub fn keep_in_file(identity: Option<PathBuf>) -> Result<ExitCode, Failure> {
    authorize("keeping secrets in a file")?;
    let secrets = keychain::silent()?;
    if let Place::File { path, .. } = secrets.place()? {
        output::line(&format!("Secrets are kept in {} already.", path.display()));
        return Ok(ExitCode::SUCCESS);
    }
    let opener = match identity {
        Some(path) => {
            let cwd = env::current_dir().map_err(|e| {
                Failure::environment(format!("cannot read the working directory: {e}; change to another one"))
            })?;
            Opener::Identity(cwd.join(path))
        }
        None => Opener::Passphrase(new_passphrase()?),
    };
    let moved = secrets.keep_in_file(&opener)?;
    let Place::File { path, .. } = secrets.place()? else { return Err(unexpected()) };
    let file = path.display();
    output::line(&format!("Secrets are kept in {file} from now on; {} moved there from the keychain.", moved.items));
    let Moved { left, .. } = moved;
    if let Some(e) = &left {
        output::line(&format!("They are in the keychain as well, from which they could not be removed: {e}"));
    }
    match opener {
        Opener::Passphrase(_) => {
            share()?;
            output::line(
                "It opens with the passphrase alone: whoever loses that loses the secrets. The engine has it until it ends; \
                 `firedoor secrets unlock` gives it to the next one.",
            );
        }
        Opener::Identity(identity) => output::line(&format!(
            "It opens with {}: keep a copy of that, and keep it out of copies of {file}.",
            identity.display()
        )),
    }
    Ok(if left.is_some() { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// On a terminal, twice the same.
fn new_passphrase() -> Result<String, Failure> {
    let first = typed_line("A new passphrase for the file of secrets, then Enter:")?;
    if io::stdin().is_terminal() && typed_line("The same again, then Enter:")? != first {
        return Err(Failure::environment("these were two different passphrases; nothing was changed"));
    }
    Ok(first)
}

/// Keeps them in the keychain again.
pub fn keep_in_keychain() -> Result<ExitCode, Failure> {
    authorize("keeping secrets in the keychain")?;
    let secrets = keychain::asking()?;
    let Place::File { identity, .. } = secrets.place()? else {
        output::line("Secrets are kept in the keychain already.");
        return Ok(ExitCode::SUCCESS);
    };
    let moved = secrets.keep_in_keychain()?;
    output::line(&format!("Secrets are kept in the keychain from now on; {} moved there.", moved.items));
    if let Some(identity) = identity {
        output::line(&format!("{} is not used any more, and stays where it is.", identity.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens the file for the engine, which is started if it does not run.
pub fn unlock() -> Result<ExitCode, Failure> {
    let secrets = keychain::silent()?;
    if let Place::File { identity: Some(identity), .. } = secrets.place()? {
        secrets.open()?;
        output::line(&format!("Nothing to unlock: the file of secrets opens with {}.", identity.display()));
        return Ok(ExitCode::SUCCESS);
    }
    // What stands on stdin can be tried once.
    let tried = AtomicBool::new(false);
    let once = move |_: &std::path::Path, again: bool| {
        let more = io::stdin().is_terminal() || !tried.swap(true, Ordering::Relaxed);
        let wrong = if again { "That was not it. " } else { "" };
        more.then(|| typed_line(&format!("{wrong}The passphrase of the file of secrets, then Enter:")).ok()).flatten()
    };
    match secrets.asking(Arc::new(once)).open() {
        // Nothing more stood there.
        Err(firedoor_model::KeychainError::FileLocked { path }) => {
            return Err(Failure::refused(format!("{path}: that was not its passphrase; it stays locked")));
        }
        other => other?,
    }
    share()?;
    output::line("Unlocked: servers get their secrets until the engine ends.");
    Ok(ExitCode::SUCCESS)
}

/// Has the engine forget it.
pub fn lock() -> Result<ExitCode, Failure> {
    let Some(mut engine) = Engine::running()? else {
        output::line("No engine runs, so nobody has what opens the file of secrets.");
        return Ok(ExitCode::SUCCESS);
    };
    match engine.ask(&Request::Lock)? {
        Reply::Opens { opens: false } => {
            output::line("Locked: no server gets a secret before `firedoor secrets unlock`.")
        }
        Reply::Opens { opens: true } => {
            return Err(Failure::refused("the file of secrets opens without a passphrase, so it cannot be locked"));
        }
        _ => return Err(unexpected()),
    }
    Ok(ExitCode::SUCCESS)
}

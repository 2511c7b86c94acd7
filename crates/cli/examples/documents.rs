//! Writes manual pages and shell completions for packages: `documents DIRECTORY`.

use std::{env, error::Error, fs, path::PathBuf};

use clap::CommandFactory as _;
use clap_complete::Shell;

#[path = "../src"]
mod program {
    pub(crate) mod arguments;
}

use program::arguments::Arguments;

fn main() -> Result<(), Box<dyn Error>> {
    let out: PathBuf = env::args_os().nth(1).ok_or("usage: documents DIRECTORY")?.into();
    let mut command = Arguments::command();
    for (shell, directory) in [(Shell::Bash, "bash"), (Shell::Zsh, "zsh"), (Shell::Fish, "fish")] {
        let directory = out.join(directory);
        fs::create_dir_all(&directory)?;
        clap_complete::generate_to(shell, &mut command, "firedoor", directory)?;
    }
    let pages = out.join("man");
    fs::create_dir_all(&pages)?;
    // A new one: completions have given every command that has others one named `help`, which is no command to describe.
    clap_mangen::generate_to(Arguments::command(), pages)?;
    Ok(())
}

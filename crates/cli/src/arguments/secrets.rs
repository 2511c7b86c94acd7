//! Secrets, in broker mode or not, and logins.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use firedoor_model::{EntryId, SecretRef, entry::EntryIdError};

#[derive(Subcommand)]
pub enum SecretsCommand {
    /// Show their names and who uses them, never their values (exit code 1 when one is missing)
    List {
        /// Look for project configurations here, too
        #[arg(long = "project", value_name = "DIR")]
        projects: Vec<PathBuf>,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Give one another value, which is read from stdin
    Set {
        /// Its name, as `list` shows it
        #[arg(value_parser = secret)]
        secret: SecretRef,
        /// Also where the same old value is kept for another entry
        #[arg(long)]
        everywhere: bool,
        /// Look for project configurations here, too
        #[arg(long = "project", value_name = "DIR")]
        projects: Vec<PathBuf>,
    },
    /// Keep them in an encrypted file from now on, on a machine without a keychain
    ///
    /// It asks for a passphrase for the file, or reads one from stdin. The engine forgets it when it ends: `unlock` gives it to
    /// the next one.
    KeepInFile {
        /// Without a passphrase: whoever can read this identity file of age opens it; it is made if it is not there
        #[arg(long, value_name = "FILE")]
        identity: Option<PathBuf>,
    },
    /// Keep them in the system's keychain again
    KeepInKeychain,
    /// Open the file of secrets for the engine, with its passphrase from the terminal or stdin
    Unlock,
    /// Have the engine forget what opens the file of secrets
    Lock,
    /// Remove one
    Remove {
        /// Its name, as `list` shows it
        #[arg(required_unless_present = "unused")]
        #[arg(value_parser = secret)]
        secret: Option<SecretRef>,
        /// All that no entry refers to
        #[arg(long, conflicts_with = "secret")]
        unused: bool,
        /// Also while an entry uses it
        #[arg(long, conflicts_with = "unused")]
        force: bool,
        /// Look for project configurations here, too
        #[arg(long = "project", value_name = "DIR")]
        projects: Vec<PathBuf>,
    },
}

#[derive(Subcommand)]
pub enum BrokerCommand {
    /// Show which secrets are in broker mode, and where they are sent
    List {
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Put a secret that Firedoor keeps into broker mode, from its server's next start
    Add(BrokerOptions),
    /// Take a secret out of broker mode: its server gets it again
    Remove {
        /// Which entry
        entry: EntryId,
        /// The secret's name in the entry
        secret: String,
    },
}

#[derive(Args)]
pub struct BrokerOptions {
    /// Which entry
    pub entry: EntryId,
    /// The secret's name in the entry; without it, every one whose service is known
    pub secret: Option<String>,
    /// The variable that tells the server where its service is, such as OPENAI_BASE_URL
    #[arg(long, value_name = "NAME", requires = "secret", requires = "url")]
    pub variable: Option<String>,
    /// For a server that reads its service's address from no variable: its encrypted connections to the service end at
    /// Firedoor, which reads them, shows the server a certificate of its own making, and has it trust that
    #[arg(long, conflicts_with = "variable")]
    pub intercept: bool,
    /// The service's own address; only requests below it get the secret
    #[arg(long, value_name = "URL", requires = "secret")]
    pub url: Option<String>,
    /// The header that the server sends the secret in
    #[arg(long, value_name = "NAME", requires = "secret")]
    pub header: Option<String>,
    /// Look for project configurations here, too
    #[arg(long = "project", value_name = "DIR")]
    pub projects: Vec<PathBuf>,
}

#[derive(Args)]
pub struct LoginOptions {
    /// Which entry
    pub entry: EntryId,
    /// Ask for this as well, as often as needed
    #[arg(long = "scope", value_name = "SCOPE")]
    pub scopes: Vec<String>,
    /// What the issuer knows Firedoor by, where it registers nobody by itself: a name that you were given there, or the
    /// https address of a document about the client
    #[arg(long, value_name = "ID")]
    pub client_id: Option<String>,
    /// The client of that name has a secret: read it, without showing it, from the terminal, once it is said which issuer
    /// gets it, or from stdin
    #[arg(long, requires = "client_id")]
    pub client_secret: bool,
    /// The issuer that the secret is for, and which alone gets it. Needed where stdin is no terminal
    #[arg(long, value_name = "URL", requires = "client_secret")]
    pub issuer: Option<String>,
    /// Open the browser without asking first
    #[arg(long, conflicts_with_all = ["paste", "device"])]
    pub yes: bool,
    /// For a machine without a browser: log in with one elsewhere, and paste the address here that it ends at
    #[arg(long)]
    pub paste: bool,
    /// For a machine without a browser: enter a code with one elsewhere, where the issuer offers that
    #[arg(long, conflicts_with = "paste")]
    pub device: bool,
    /// Look for project configurations here, too
    #[arg(long = "project", value_name = "DIR")]
    pub projects: Vec<PathBuf>,
}

fn secret(text: &str) -> Result<SecretRef, String> {
    let form = |why| match why {
        EntryIdError::Parts | EntryIdError::Empty => {
            "a secret is named CLIENT/SCOPE/SERVER/NAME, as `firedoor secrets list` shows it".into()
        }
        other => other.to_string(),
    };
    text.parse().map_err(form)
}

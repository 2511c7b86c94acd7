//! What can be asked for.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use firedoor_model::{EntryId, Mode, SecretRef, Severity, network::HostGrant, question::Ref, remote::Transport};

/// A firewall for the tools that AI agents use.
#[derive(Parser)]
#[command(name = "firedoor", version, about)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Show clients, their files and servers, what is protected, and what there is to know about them
    Scan(ScanOptions),
    /// Reroute servers through Firedoor
    Protect(ProtectOptions),
    /// Give configurations back as they were
    Restore(RestoreOptions),
    /// Show what the engine is doing (exit code 2 when none runs)
    Status {
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Check that everything works here (exit code 1 when something does not)
    Doctor {
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show or set how eagerly Firedoor interrupts
    Mode {
        /// watch, balanced or strict
        mode: Option<Mode>,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Ask nothing for a while; what is certain and critical stays blocked
    Pause {
        /// For how many minutes (1 to 60)
        #[arg(default_value_t = 15)]
        minutes: u32,
    },
    /// Ask again, before a pause is over
    Resume,
    /// Run the engine without a desktop
    Daemon {
        /// Go to the background; print "ready" when it listens
        #[arg(long)]
        background: bool,
        /// The second half of --background
        #[arg(long, hide = true)]
        child: bool,
    },
    /// Show the open questions, and new servers that could be protected
    Pending {
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Leave a new server as it is: do not offer to protect it until it changes
    Ignore {
        /// Its entry, as `firedoor pending` shows it
        entry: EntryId,
    },
    /// Answer a question
    Answer {
        /// Its reference, as `firedoor pending` shows it
        id: Ref,
        /// What to do
        choice: ChoiceArgument,
        /// How long the answer holds
        #[arg(long = "for", value_enum, default_value = "once")]
        duration: DurationArgument,
        /// What an allow for longer than once holds for
        #[arg(long, value_enum, default_value = "tool")]
        scope: ScopeArgument,
    },
    /// Show the audit log
    Log {
        /// JSON Lines
        #[arg(long)]
        json: bool,
        /// Go on with new rows
        #[arg(long)]
        follow: bool,
        /// Only this server (its name or its entry's id)
        #[arg(long)]
        server: Option<String>,
        /// Only from this time on: RFC 3339, or 90s, 10m, 2h, 3d ago
        #[arg(long)]
        since: Option<String>,
        /// Where each finding was seen, and what would make it go away
        #[arg(long, conflicts_with = "json")]
        details: bool,
        #[command(subcommand)]
        command: Option<LogCommand>,
    },
    /// List, add and remove rules
    Rules {
        #[command(subcommand)]
        command: RulesCommand,
    },
    /// List, set and remove the secrets that Firedoor keeps for entries, and choose where: keychain or file
    Secrets {
        #[command(subcommand)]
        command: SecretsCommand,
    },
    /// Log in at a server that is reached over HTTP
    Login(LoginOptions),
    /// End a login at a server: tell its issuer, and forget what it gave
    Logout {
        /// Which entry
        entry: EntryId,
    },
    /// Start the program that logs in, confined
    #[command(hide = true)]
    Errand,
    /// Look at pinned definitions and accept changes
    Pins {
        #[command(subcommand)]
        command: PinsCommand,
    },
    /// Grant a server more than its profile does
    Grants {
        #[command(subcommand)]
        command: GrantsCommand,
    },
    /// Secrets that servers do not get: Firedoor sends them to the one host that they are for
    Broker {
        #[command(subcommand)]
        command: BrokerCommand,
    },
    /// Addresses on this machine for clients that cannot start programs
    Endpoints {
        #[command(subcommand)]
        command: EndpointsCommand,
    },
    /// End a running server; its client may start it again
    Stop {
        /// Which entry
        entry: EntryId,
    },
    /// Write down what a server does during its next run, and propose a profile for it
    Observe {
        /// Which entry
        entry: EntryId,
        /// What to do
        what: ObserveArgument,
        /// Look for project configurations here, too
        #[arg(long = "project", value_name = "DIR")]
        projects: Vec<PathBuf>,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Use the sandbox by itself
    Sandbox {
        #[command(subcommand)]
        command: SandboxCommand,
    },
    /// Work with WebAssembly tools
    Wasm {
        #[command(subcommand)]
        command: WasmCommand,
    },
    /// Run a program once in the sandbox, and report what of what it was given shows in what it puts out (exit code 1 when
    /// something does, or when it tried what it may not)
    ScanTool(ScanToolOptions),
    /// Judge records offline: JSON Lines in, JSON Lines out (exit code 1 when one is not allowed)
    Inspect,
}

#[derive(Args)]
pub struct ScanOptions {
    /// Look for project configurations here, too
    #[arg(long = "project", value_name = "DIR")]
    pub projects: Vec<PathBuf>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
    /// Findings as one SARIF 2.1.0 document
    #[arg(long, conflicts_with = "json")]
    pub sarif: bool,
    /// Exit with code 1 when there is a finding of this level or above: low, medium, high or critical
    #[arg(long, value_name = "LEVEL")]
    pub fail_on: Option<Severity>,
}

#[derive(Args)]
pub struct ProtectOptions {
    /// Every server of every client
    #[arg(long, conflicts_with = "entries")]
    pub all: bool,
    /// CLIENT, CLIENT/SERVER or a whole entry id
    #[arg(required_unless_present = "all")]
    pub entries: Vec<String>,
    /// Print the differences and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Do not start the servers to compare their tools
    #[arg(long)]
    pub no_verify: bool,
    /// Leave entries with an address as such, and put an address of Firedoor's in front: for clients that cannot start
    /// programs, because they run in a sandbox of their own
    #[arg(long, conflicts_with = "all")]
    pub endpoint: bool,
    /// Start the servers through Firedoor only, to see that they answer; nothing is compared
    #[arg(long, conflicts_with = "no_verify")]
    pub confined: bool,
    /// Look for project configurations here, too
    #[arg(long = "project", value_name = "DIR")]
    pub projects: Vec<PathBuf>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
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

#[derive(Args)]
pub struct RestoreOptions {
    /// Every protected entry of every client
    #[arg(long, conflicts_with = "entries")]
    pub all: bool,
    /// CLIENT, CLIENT/SERVER or a whole entry id
    #[arg(required_unless_present = "all")]
    pub entries: Vec<String>,
    /// Look for project configurations here, too
    #[arg(long = "project", value_name = "DIR")]
    pub projects: Vec<PathBuf>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum ChoiceArgument {
    /// Let it pass
    Allow,
    /// Refuse it
    Block,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum DurationArgument {
    /// This one call
    Once,
    /// Until the agent's session ends
    Session,
    /// As a rule
    Always,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum ScopeArgument {
    /// The same call
    Call,
    /// The tool, and the address that the call names
    Tool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ObserveArgument {
    /// Observe the next run, once
    On,
    /// Do not
    Off,
    /// Show what was seen, and the profile that follows from it
    Show,
}

#[derive(Subcommand)]
pub enum LogCommand {
    /// Show for how many days the log is kept, or set it (7 to 3650)
    Keep {
        /// Days
        days: Option<u32>,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Check that no row was changed, removed or inserted (exit code 1 when one was)
    Verify {
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
}

#[derive(Subcommand)]
pub enum RulesCommand {
    /// Show all rules
    List {
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Add a rule; what is not given matches everything
    Add {
        /// What it does
        effect: ChoiceArgument,
        /// Of this entry only
        #[arg(long)]
        entry: Option<EntryId>,
        /// Calls of this client only: the path of its executable, or of the script that it runs
        #[arg(long)]
        client: Option<String>,
        /// This tool only
        #[arg(long)]
        tool: Option<String>,
        /// Findings of this detector only, or of a family such as "flow/"
        #[arg(long)]
        detector: Option<String>,
        /// Ends after this time: 90s, 10m, 2h, 3d
        #[arg(long)]
        expires: Option<String>,
    },
    /// Add a rule about what a row of the log tells: allow marks what was found there as wrong, block blocks the tool
    From {
        /// The row's number, as `firedoor log --json` shows it (`seq`)
        row: u64,
        /// What it does
        effect: ChoiceArgument,
    },
    /// Show rules that would have answered earlier questions as you did, or add one of them
    Suggest {
        /// Add the one of this name
        #[arg(long, value_name = "NAME")]
        accept: Option<firedoor_model::Digest>,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Put a rule back that was removed since the engine was started
    Restore {
        /// The number that it had
        id: i64,
    },
    /// Remove a rule
    Remove {
        /// Its number
        id: i64,
    },
    /// Add the rules in a file made by export
    Import {
        /// The file
        file: PathBuf,
    },
    /// Print all rules as JSON Lines
    Export,
}

#[derive(Subcommand)]
pub enum PinsCommand {
    /// Show pinned definitions
    List {
        /// Of this entry only
        entry: Option<EntryId>,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show what changed (exit code 1 when something did)
    Diff {
        /// Of this entry only
        entry: Option<EntryId>,
    },
    /// Accept changed definitions
    Accept {
        /// Of this entry
        entry: EntryId,
        /// Only this tool
        #[arg(long)]
        tool: Option<String>,
    },
}

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

#[derive(Subcommand)]
pub enum EndpointsCommand {
    /// Show them (exit code 1 when one cannot be reached)
    List {
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Make one for a server that stands in no client's configuration, and print its address
    Add(EndpointOptions),
    /// Remove one: its address reaches nothing any more
    Remove {
        /// Its name, or its entry's id
        name: String,
    },
}

#[derive(Args)]
pub struct EndpointOptions {
    /// What it is called; its entry is endpoint/user/NAME
    pub name: String,
    /// The server's address, when it is reached over HTTP
    #[arg(long, conflicts_with = "command")]
    pub url: Option<String>,
    /// How it is spoken to: auto, http or sse
    #[arg(long, requires = "url", default_value_t)]
    pub transport: Transport,
    /// Send it this header; without a value, it is read from stdin and kept as a secret
    #[arg(long = "header", value_name = "NAME[=VALUE]", requires = "url")]
    pub headers: Vec<String>,
    /// Give it this variable; without a value, it is read from stdin and kept as a secret
    #[arg(long = "env", value_name = "NAME[=VALUE]", conflicts_with = "url")]
    pub env: Vec<String>,
    /// The server's command
    #[arg(last = true)]
    pub command: Vec<String>,
}

#[derive(Subcommand)]
pub enum GrantsCommand {
    /// Show what was granted
    List {
        /// To this entry only
        entry: Option<EntryId>,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Grant more
    Add(GrantOptions),
    /// Take grants away
    Remove(RevokeOptions),
}

#[derive(Args)]
pub struct GrantOptions {
    /// Which entry
    pub entry: EntryId,
    #[command(flatten)]
    pub access: AccessOptions,
    /// Look for the entry in project configurations here, too
    #[arg(long = "project", value_name = "DIR")]
    pub projects: Vec<PathBuf>,
}

#[derive(Args)]
pub struct RevokeOptions {
    /// Which entry
    pub entry: EntryId,
    #[command(flatten)]
    pub access: AccessOptions,
}

#[derive(Args)]
pub struct AccessOptions {
    /// Read this path and what is below it
    #[arg(long = "ro", value_name = "PATH")]
    pub read: Vec<PathBuf>,
    /// Read and write this path and what is below it
    #[arg(long = "rw", value_name = "PATH")]
    pub write: Vec<PathBuf>,
    /// Reach this host: a name, *.NAME, an address, or * for every public one; /udp for datagrams
    #[arg(long = "host", value_name = "NAME[:PORT[/udp]]")]
    pub hosts: Vec<HostGrant>,
    /// Reach this Unix socket
    #[arg(long = "unix", value_name = "PATH")]
    pub sockets: Vec<PathBuf>,
    /// Get this environment variable
    #[arg(long = "env", value_name = "NAME")]
    pub env: Vec<String>,
}

#[derive(Subcommand)]
pub enum SandboxCommand {
    /// Run a command as a server would be run; its exit code is the command's
    Run {
        /// Use this profile instead of the one for the command
        #[arg(long)]
        profile: Option<String>,
        #[command(flatten)]
        access: AccessOptions,
        /// Write down what it does and, at the end, show that and the profile it would need
        #[arg(long)]
        observe: bool,
        /// Show it in this file instead of on stderr
        #[arg(long, value_name = "FILE", requires = "observe")]
        record: Option<PathBuf>,
        /// Show it as one JSON document
        #[arg(long, requires = "observe")]
        json: bool,
        /// The command
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
    /// Show what this machine can enforce (exit code 1 when servers cannot be confined)
    Doctor {
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
}

#[derive(Subcommand)]
pub enum WasmCommand {
    /// Run a module once, and report what of what it was given shows in what it puts out (exit code 1 when something does, or
    /// when it tried what it may not)
    Scan(WasmScanOptions),
}

#[derive(Args)]
pub struct WasmScanOptions {
    /// A module, or a folder of modules, each of which is scanned
    #[arg(required_unless_present = "list")]
    pub module: Option<PathBuf>,
    /// Give the module this variable; without a value, ours
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    pub env: Vec<String>,
    /// Open this directory to the module, to read, as /data or under the name given
    #[arg(long = "dir", value_name = "DIR[::GUEST]")]
    pub directories: Vec<String>,
    /// Let the module reach this host: a name, *.NAME, an address, or * for every public one
    #[arg(long = "host", value_name = "NAME[:PORT[/udp]]")]
    pub hosts: Vec<HostGrant>,
    /// Most bytes of the module's memory
    #[arg(long, value_name = "BYTES", default_value_t = 512 << 20)]
    pub memory: u64,
    /// Most instructions, about
    #[arg(long, value_name = "COUNT")]
    pub fuel: Option<u64>,
    #[command(flatten)]
    pub scan: ScanRunOptions,
    #[command(flatten)]
    pub batch: BatchOptions,
    /// What the module gets
    #[arg(last = true)]
    pub arguments: Vec<OsString>,
}

#[derive(Args)]
pub struct ScanToolOptions {
    /// Use this profile instead of the one for the command
    #[arg(long)]
    pub profile: Option<String>,
    /// With --env NAME=VALUE, this value
    #[command(flatten)]
    pub access: AccessOptions,
    #[command(flatten)]
    pub scan: ScanRunOptions,
    #[command(flatten)]
    pub batch: BatchOptions,
    /// The command
    #[arg(last = true, required_unless_present = "list")]
    pub command: Vec<OsString>,
}

/// One run, and how it is reported.
#[derive(Args)]
pub struct ScanRunOptions {
    /// Give it this file as standard input; without it there is none
    #[arg(long, value_name = "FILE")]
    pub stdin: Option<PathBuf>,
    /// Speak MCP to it: list its tools and call each once with made-up arguments
    #[arg(long, conflicts_with = "stdin")]
    pub mcp: bool,
    /// Longest time, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub timeout: u64,
    /// Most bytes of standard output and standard error, each
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20, value_parser = clap::value_parser!(u64).range(1..=1 << 28))]
    pub output: u64,
    /// Match as the MCP-SandboxScan paper does, to compare
    #[arg(long)]
    pub paper: bool,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
    /// Markdown; values are masked
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// One SARIF 2.1.0 document; values are masked
    #[arg(long, conflicts_with_all = ["json", "markdown"])]
    pub sarif: bool,
}

/// Many scans.
#[derive(Args)]
pub struct BatchOptions {
    /// Scan each line of this file: a module's path, or a command as a JSON array of words
    #[arg(long, value_name = "FILE")]
    pub list: Option<PathBuf>,
    /// At most so many at a time
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub jobs: u8,
    /// Append each report to this file of JSON Lines; what is in it already is not scanned again
    #[arg(long, value_name = "FILE")]
    pub results: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        super::Arguments::command().debug_assert();
    }
}

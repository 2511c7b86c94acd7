//! The shim's arguments, as `firedoor protect` writes them into a client's configuration.

use std::ffi::OsString;

use firedoor_ipc::process::Process;
use firedoor_model::{
    EntryId,
    entry::EntryIdError,
    remote::{Transport, TransportError},
};

/// What to start, for which entry.
#[derive(Debug, PartialEq, Eq)]
pub struct Invocation {
    pub entry: EntryId,
    /// The client that it works for, where that started no program: said by the program that listens at endpoints.
    pub client: Option<Process>,
    pub server: Server,
}

/// Where the server is.
#[derive(Debug, PartialEq, Eq)]
pub enum Server {
    /// A program.
    Program { program: OsString, args: Vec<OsString> },
    /// Reached over HTTP.
    Remote { url: Value, transport: Transport, headers: Vec<(String, Value)> },
}

/// A text that may be a secret: as it stands, or in a variable, so that it stands in no argument.
#[derive(Debug, PartialEq, Eq)]
pub enum Value {
    Literal(String),
    /// What goes before the variable's value, and the variable.
    Variable {
        before: &'static str,
        name: String,
    },
}

#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    Run(Invocation),
    Version,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UsageError {
    #[error(
        "usage: firedoor-shim --entry ID [--no-args] (--|--program) PROGRAM [ARGUMENT…]\n\
             usage: firedoor-shim --entry ID --url URL [--transport auto|http|sse] [--header NAME=VALUE]…\n({0})"
    )]
    Shape(&'static str),
    #[error(transparent)]
    Entry(#[from] EntryIdError),
    #[error(transparent)]
    Transport(#[from] TransportError),
    #[error("a client is a process id, a colon and its start time")]
    Client,
    #[error("the variable {0}, which the entry takes a value from, is not set, or is not UTF-8")]
    Variable(String),
}

impl Value {
    /// `env:NAME` and `Bearer env:NAME` mean a variable.
    fn parse(text: &str) -> Self {
        for before in ["", "Bearer "] {
            if let Some(name) = text.strip_prefix(before).and_then(|rest| rest.strip_prefix("env:")) {
                return Self::Variable { before, name: name.to_owned() };
            }
        }
        Self::Literal(text.to_owned())
    }

    /// The text itself.
    pub fn resolve(self, variable: impl Fn(&str) -> Option<OsString>) -> Result<String, UsageError> {
        match self {
            Self::Literal(text) => Ok(text),
            Self::Variable { before, name } => {
                let value = variable(&name).and_then(|value| value.into_string().ok());
                value.map(|value| format!("{before}{value}")).ok_or(UsageError::Variable(name))
            }
        }
    }
}

/// `--no-args` only tells `firedoor restore` that the entry had no `args` of its own.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Parsed, UsageError> {
    let mut args = args.into_iter();
    let (mut entry, mut url, mut transport, mut headers) = (None, None, Transport::default(), Vec::new());
    let (mut no_args, mut client) = (false, None);
    let program = loop {
        let Some(arg) = args.next() else { break None };
        let mut value = |what| {
            let value = args.next().ok_or(UsageError::Shape(what))?;
            value.into_string().map_err(|_| UsageError::Shape("an argument is not UTF-8"))
        };
        match arg.to_str() {
            Some("--entry") => entry = Some(value("--entry needs an id")?.parse()?),
            Some("--url") => url = Some(Value::parse(&value("--url needs an address")?)),
            Some("--transport") => transport = value("--transport needs a name")?.parse()?,
            Some("--header") => {
                let header = value("--header needs NAME=VALUE")?;
                let (name, value) = header.split_once('=').ok_or(UsageError::Shape("--header needs NAME=VALUE"))?;
                headers.push((name.to_owned(), Value::parse(value)));
            }
            Some("--client") => client = Some(process(&value("--client needs a process")?).ok_or(UsageError::Client)?),
            // What the entry was: for `firedoor restore` alone.
            Some("--was" | "--type") => drop(value("--was and --type need a value")?),
            Some("--no-args") => no_args = true,
            Some("--version") => return Ok(Parsed::Version),
            // The second for clients that take a bare "--" for their own.
            Some("--" | "--program") => break Some(args.next().ok_or(UsageError::Shape("a program is missing"))?),
            _ => return Err(UsageError::Shape("unknown option")),
        }
    };
    let server = match (program, url) {
        (Some(program), None) if headers.is_empty() && transport == Transport::Auto => {
            Server::Program { program, args: args.collect() }
        }
        (None, Some(url)) if !no_args => Server::Remote { url, transport, headers },
        (None, None) => return Err(UsageError::Shape("\"--\" and a program are missing, or --url")),
        _ => return Err(UsageError::Shape("a server is a program or has an address, not both")),
    };
    Ok(Parsed::Run(Invocation { entry: entry.ok_or(UsageError::Shape("--entry is missing"))?, client, server }))
}

fn process(text: &str) -> Option<Process> {
    let (pid, start) = text.split_once(':')?;
    Some(Process { pid: pid.parse().ok()?, start: start.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str) -> Result<Parsed, UsageError> {
        parse(line.split('|').filter(|a| !a.is_empty()).map(OsString::from))
    }

    fn server(line: &str) -> Server {
        match check(line) {
            Ok(Parsed::Run(invocation)) => invocation.server,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn invocations() {
        let program = Server::Program { program: "npx".into(), args: vec!["-y".into(), "--".into(), "srv".into()] };
        let want = Invocation { entry: "cursor/user/fs".parse().unwrap(), client: None, server: program };
        assert_eq!(check("--entry|cursor/user/fs|--|npx|-y|--|srv"), Ok(Parsed::Run(want)));
        let client = |line: &str| match check(line) {
            Ok(Parsed::Run(invocation)) => invocation.client,
            other => panic!("{other:?}"),
        };
        assert_eq!(client("--entry|a/b/c|--client|7:99|--|x"), Some(Process { pid: 7, start: 99 }));
        let want = Server::Program { program: "npx".into(), args: vec!["--program".into(), "x".into()] };
        assert_eq!(server("--entry|a/b/c|--program|npx|--program|x"), want);
        let want = Server::Program { program: "x".into(), args: Vec::new() };
        assert_eq!(server("--entry|a/b/c|--no-args|--|x"), want);
        assert_eq!(check("--version"), Ok(Parsed::Version));
    }

    #[test]
    fn remote_servers() {
        let literal = |text: &str| Value::Literal(text.to_owned());
        let variable = |before, name: &str| Value::Variable { before, name: name.to_owned() };
        let want = Server::Remote { url: literal("https://a/b?c=d"), transport: Transport::Auto, headers: Vec::new() };
        assert_eq!(server("--entry|a/b/c|--url|https://a/b?c=d"), want);
        let line = "--entry|a/b/c|--url|env:U|--transport|sse|--header|X-A=b=c|--header|Authorization=Bearer env:T";
        assert_eq!(server(&format!("{line}|--was|url,headers|--type|http")), server(line));
        let headers = vec![("X-A".into(), literal("b=c")), ("Authorization".into(), variable("Bearer ", "T"))];
        assert_eq!(server(line), Server::Remote { url: variable("", "U"), transport: Transport::Sse, headers });
    }

    #[test]
    fn values_come_from_variables() {
        let set = |name: &str| (name == "T").then(|| OsString::from("secret"));
        assert_eq!(Value::parse("Bearer env:T").resolve(set), Ok("Bearer secret".into()));
        assert_eq!(Value::parse("env:T").resolve(set), Ok("secret".into()));
        assert_eq!(Value::parse("x env:T").resolve(set), Ok("x env:T".into()));
        assert_eq!(Value::parse("env:U").resolve(set), Err(UsageError::Variable("U".into())));
    }

    #[test]
    fn mistakes() {
        for line in [
            "",
            "--",
            "--|npx",
            "--entry",
            "--entry|a/b/c",
            "--entry|a/b/c|--",
            "--entry|a|--|x",
            "-y|--|x",
            "--entry|a/b/c|--url",
            "--url|https://a",
            "--entry|a/b/c|--url|https://a|--|x",
            "--entry|a/b/c|--url|https://a|--no-args",
            "--entry|a/b/c|--url|https://a|--transport|ftp",
            "--entry|a/b/c|--url|https://a|--header|X",
            "--entry|a/b/c|--header|X=y|--|x",
            "--entry|a/b/c|--client|7|--|x",
            "--entry|a/b/c|--transport|sse|--|x",
        ] {
            assert!(check(line).is_err(), "{line}");
        }
    }
}

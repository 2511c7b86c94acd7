//! The shim's arguments, as `firedoor protect` writes them into a client's configuration.

use std::ffi::OsString;

use firedoor_model::{EntryId, entry::EntryIdError};

/// What to start, for which entry.
#[derive(Debug, PartialEq, Eq)]
pub struct Invocation {
    pub entry: EntryId,
    pub program: OsString,
    pub args: Vec<OsString>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    Run(Invocation),
    Version,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UsageError {
    #[error("usage: firedoor-shim --entry ID [--no-args] -- PROGRAM [ARGUMENT…] ({0})")]
    Shape(&'static str),
    #[error("usage: firedoor-shim --entry ID [--no-args] -- PROGRAM [ARGUMENT…] ({0})")]
    Entry(#[from] EntryIdError),
}

/// `--no-args` only tells `firedoor restore` that the entry had no `args` of its own.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Parsed, UsageError> {
    let mut args = args.into_iter();
    let mut entry = None;
    loop {
        let arg = args.next().ok_or(UsageError::Shape("\"--\" and a program are missing"))?;
        match arg.to_str() {
            Some("--entry") => {
                let id = args.next().ok_or(UsageError::Shape("--entry needs an id"))?;
                let id = id.to_str().ok_or(UsageError::Shape("the entry's id is not UTF-8"))?;
                entry = Some(id.parse()?);
            }
            Some("--no-args") => {}
            Some("--version") => return Ok(Parsed::Version),
            Some("--") => break,
            _ => return Err(UsageError::Shape("unknown option")),
        }
    }
    Ok(Parsed::Run(Invocation {
        entry: entry.ok_or(UsageError::Shape("--entry is missing"))?,
        program: args.next().ok_or(UsageError::Shape("a program is missing"))?,
        args: args.collect(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str) -> Result<Parsed, UsageError> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn invocations() {
        let want = Invocation {
            entry: "cursor/user/fs".parse().unwrap(),
            program: "npx".into(),
            args: vec!["-y".into(), "--".into(), "srv".into()],
        };
        assert_eq!(check("--entry cursor/user/fs -- npx -y -- srv"), Ok(Parsed::Run(want)));
        assert!(matches!(check("--entry a/b/c --no-args -- x"), Ok(Parsed::Run(i)) if i.args.is_empty()));
        assert_eq!(check("--version"), Ok(Parsed::Version));
    }

    #[test]
    fn mistakes() {
        for line in ["", "--", "-- npx", "--entry", "--entry a/b/c", "--entry a/b/c --", "--entry a -- x", "-y -- x"] {
            assert!(check(line).is_err(), "{line}");
        }
    }
}

//! What enters and leaves beside the messages: a server's environment, and the hosts that it tries to reach.

use std::sync::Arc;

use firedoor_model::{EntryId, Finding, Millis, Untrusted};

use crate::{
    Call, Inspector, Privacy, Sink,
    arguments::Arguments,
    flow,
    memory::{Memory, Origin},
    placeholder,
    reach::Toward,
};

/// Most variables of one server that are looked at, and the longest value.
const MAX_VARIABLES: usize = 1024;
const MAX_VALUE: usize = 64 * 1024;
/// Longest destination that is looked at: a host name has 253 characters.
const MAX_TARGET: usize = 1024;

impl Inspector {
    /// Remembers the credentials in the environment that a server is started with. They are the server's own, and it may
    /// be sent them; another server may not.
    pub fn environment<'v>(
        &self,
        memory: &mut Memory,
        entry: &EntryId,
        variables: impl IntoIterator<Item = (&'v str, &'v str)>,
        now: Millis,
    ) {
        for (name, value) in variables.into_iter().take(MAX_VARIABLES).filter(|(_, v)| v.len() <= MAX_VALUE) {
            memory.has_itself(entry, value.as_bytes());
            let assigned = format!("{name}=\"{value}\"");
            for hit in self.credentials.scan(assigned.as_bytes()) {
                let secret = hit.value(assigned.as_bytes());
                memory.has_itself(entry, secret);
                let tool = Untrusted::new("environment");
                let origin =
                    Origin { entry: entry.clone(), tool, at: now, sink: Sink::External, privacy: Privacy::Unknown };
                memory.remember_secret(&Arc::new(origin), secret, format!("/env/{name}").into(), hit.generic);
            }
        }
    }

    /// Remembered data in what a server tried to reach, `HOST` or `HOST:PORT`: who asks for a name tells it to the name's
    /// owner, and data is cut at dots to fit in.
    pub fn destination(&self, memory: &mut Memory, entry: &EntryId, target: &str, now: Millis) -> Vec<Finding> {
        if target.len() > MAX_TARGET {
            return Vec::new();
        }
        let host = target.rsplit_once(':').map_or(target, |(host, _)| host);
        let joined = host.replace('.', "");
        let mut out = Vec::new();
        for subject in [host, &joined] {
            let call = Call {
                entry,
                method: "connect",
                subject,
                arguments: None,
                sink: Sink::External,
                schema: None,
                usual: None,
                now,
            };
            let found = flow::inspect(memory, &call, &Arguments::of(&call), Toward::NOWHERE);
            if out.is_empty() {
                out = found;
            }
        }
        if [host, &joined].into_iter().any(placeholder::stands_in) {
            out.push(placeholder::in_name(entry));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use data_encoding::{BASE32_NOPAD, HEXLOWER};

    use super::*;
    use crate::{CallLabel, Limits, Source};

    /// A credential that no scanner finds in this file.
    fn token() -> String {
        format!("gh{}_{}", "p", "a8Kd92LmQx7Zt4Vb1Nc6Yw3Rf5Hs0Jg2Pe9U")
    }

    fn labels(text: &str, length: usize) -> String {
        text.as_bytes().chunks(length).map(|c| String::from_utf8_lossy(c).into_owned()).collect::<Vec<_>>().join(".")
    }

    #[test]
    fn data_in_names_is_seen() {
        let inspector = Inspector::new();
        let (files, own): (EntryId, EntryId) = ("c/s/files".parse().unwrap(), "c/s/net".parse().unwrap());
        let result = serde_json::json!({"content": [{"text": format!("token: {}", token())}]}).to_string();
        let check = |target: String, want: bool| {
            let mut memory = Memory::new(Limits::default());
            let label = CallLabel { privacy: Privacy::Sensitive, sink: Sink::Local };
            let source = Source { entry: &files, method: "tools/call", subject: "read", label, now: Millis(1) };
            inspector.result(&mut memory, &source, &result);
            let found = inspector.destination(&mut memory, &own, &target, Millis(2));
            assert_eq!(found.iter().any(|f| f.detector == "flow/secret"), want, "{target}");
        };
        check(format!("{}.evil.example:443", token().replace('_', "-").to_lowercase()), true);
        check(format!("{}.evil.example", labels(&HEXLOWER.encode(token().as_bytes()), 60)), true);
        check(format!("{}.evil.example:53", labels(&BASE32_NOPAD.encode(token().as_bytes()).to_lowercase(), 30)), true);
        check("api.example.com:443".into(), false);
        check("x".repeat(MAX_TARGET + 1), false);
    }

    #[test]
    fn a_servers_own_key_may_not_go_to_another() {
        let inspector = Inspector::new();
        let (own, other): (EntryId, EntryId) = ("c/s/git".parse().unwrap(), "c/s/net".parse().unwrap());
        let mut memory = Memory::new(Limits::default());
        let token = token();
        let variables = [("GITHUB_TOKEN", token.as_str()), ("HOME", "/home/u"), ("LANG", "C.UTF-8")];
        inspector.environment(&mut memory, &own, variables, Millis(1));
        assert_eq!(memory.len(), 1);
        let arguments = serde_json::json!({"body": data_encoding::BASE64.encode(token.as_bytes())}).to_string();
        for (entry, interrupts) in [(&own, false), (&other, true)] {
            let (method, subject, arguments) = ("tools/call", "send", Some(arguments.as_str()));
            let call = Call {
                entry,
                method,
                subject,
                arguments,
                sink: Sink::External,
                schema: None,
                usual: None,
                now: Millis(2),
            };
            let found = inspector.call(&mut memory, &call);
            let certain = found
                .iter()
                .any(|f| f.detector == "flow/secret" && f.confidence > firedoor_model::Confidence::Possible);
            assert_eq!(certain, interrupts, "{entry}");
        }
        // The log says where it came from, not what it is.
        assert!(!format!("{memory:?}").contains(&token));
    }
}

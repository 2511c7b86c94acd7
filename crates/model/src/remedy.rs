//! What would make a finding go away: one sentence for each detector, the same wherever a finding is shown.

/// Detectors, or families of them (with a slash at the end), and what to do about their findings. The longest name wins.
#[rustfmt::skip]
const REMEDIES: &[(&str, &str)] = &[
    ("broker/", "Look at what the server did with its placeholder (firedoor log); if you do not trust it, stop it (firedoor stop) and remove it."),
    ("broker/distrusted", "If its connections fail, the server brings its own certificates: it cannot be used with --intercept (firedoor broker remove); where it reads its service's address from a variable, say that with --variable."),
    ("broker/echo", "The secret was masked, so the server did not get it; replace it where the service shows it to others as well."),
    ("broker/other-credential", "Let the server use the credential of its entry; or, if it needs another one there, take it out of broker mode (firedoor broker remove)."),
    ("broker/other-name", "Nothing was sent. If the server means well, it connects to its service by another name, or without one: it cannot be used with --intercept (firedoor broker remove)."),
    ("broker/other-protocol", "Nothing was sent. A server that needs HTTP/2 or WebSocket cannot be used with --intercept (firedoor broker remove)."),
    ("call/", "Let the agent make the call without this in its arguments; or, if this tool is meant to get it, allow this detector for this tool (firedoor rules add allow)."),
    ("call/deletes-rows", "Let the statement name the rows that are meant (WHERE), or run it yourself."),
    ("call/destroys-files", "Let the agent name the one folder that is meant, or delete it yourself."),
    ("call/destroys-remote", "Let the agent name the one thing that is meant, or delete it yourself."),
    ("call/fetch-and-run", "Fetch the program to a file, look at it, and run it yourself."),
    ("call/grants-all", "Give the account only the rights that it needs; or, if it is to have all of them, allow the call once."),
    ("call/local-address", "Write the address as a host name or in its usual spelling, so that it can be seen where the call goes."),
    ("call/metadata-address", "Give the server the credentials that it needs in its entry's environment, so that nothing has to ask the cloud for them."),
    ("call/opens-to-all", "Share it with those who need it; or, if everybody is to read it (a public site), allow the call once."),
    ("call/owns-host", "Start it with the folders that it needs, and without the rights of the machine; or start it yourself."),
    ("call/path-traversal", "Write the path without \"..\"; if the folder lies elsewhere, grant it (firedoor grants add)."),
    ("call/persists", "Install what should be started later yourself."),
    ("call/rate", "Ask the agent why it calls the tool so often; if it is meant to, allow this detector for this tool (firedoor rules add allow)."),
    ("call/reads-environment", "Send only the one value that is needed, or have the server read it from its own environment."),
    ("call/schema", "Ask the server's author to correct the tool's input schema, or the agent to keep to it."),
    ("call/secret", "Put the credential into the server's environment instead of the conversation, and replace it if it should not have been seen."),
    ("call/unlike-before", "Look at what is new in the call; it is told once a session, and after the session it is what the tool is used to."),
    ("call/volume", "Ask the agent what it sends; if the tool is meant to get so much, allow this detector for this tool (firedoor rules add allow)."),
    ("definition/", "Read the tool's definition; if it is what you want, accept it (firedoor pins accept); else remove the server."),
    ("definition/asks-for-context", "Read which parameter asks for it; if you want this server to have your conversation, accept the tool (firedoor pins accept)."),
    ("definition/changed", "Look at what changed (firedoor pins diff) and accept it (firedoor pins accept) if you expected it, after an update for example."),
    ("definition/clone", "Disable one of the two servers, or accept the tool if both are meant (firedoor pins accept)."),
    ("definition/cross-reference", "Read what it says about the other server's tool; accept it (firedoor pins accept) only if the two are meant to work together."),
    ("definition/duplicate", "Ask the server's author to give each tool a name of its own."),
    ("definition/hidden-text", "Ask the server's author why the text holds characters that nothing shows; accept the tool (firedoor pins accept) only once you know."),
    ("definition/mismatch", "Do not let a client run this tool unasked on the word of its annotations; ask the server's author to correct them, or accept the tool (firedoor pins accept)."),
    ("definition/secret", "Ask the server's author to take the credential out, and replace it: every client of this server has read it."),
    ("definition/shadowing", "Find out which server you mean, and remove the other one."),
    ("definition/unread", "Read what the definition holds encoded or compressed; if it says nothing to the agent, accept it (firedoor pins accept); else remove the server."),
    ("engine/", "Try again; if it comes back, run firedoor doctor and report it."),
    ("flow/", "Let the agent do it without this data; or, if it may go there, answer allow or add a rule for this tool (firedoor rules add allow)."),
    ("flow/after-injection", "Start a new session, in which the agent has not read that text; or look at what the call does and where it goes, and allow it if that is what you asked for. That text then counts as no attack: what goes to whom it names is still asked about."),
    ("flow/after-injection-elsewhere", "Start a new session, in which the agent has not read that text; else nothing needs to be done."),
    ("flow/after-injection-hint", "Look at who is meant to get it, and allow it if that is what you asked for; a text that the agent has read names them, beside words to an agent or a request."),
    ("flow/encoded", "Ask the agent to send the text as it is; or, if this tool is meant to get it encoded, allow it."),
    ("flow/forgotten", "Restart the client, so that Firedoor sees its session from the start; or look at the call, and allow it if you know what the agent has read."),
    ("flow/trifecta", "Use one session for private data and another for the web; or allow this tool (firedoor rules add allow)."),
    ("flow/unchecked", "Send fewer encoded parts in one call."),
    ("result/", "Nothing needs to be done about the result; look at what the agent does next."),
    ("result/classified", "Look at the text; start a new session if you do not trust it, for this one is marked and asks more. If your classifier is wrong too often, raise classifier.threshold in Firedoor's config.toml."),
    ("result/hidden-injection", "Look at where the text comes from; start a new session if you do not trust it, for this one is marked and asks more."),
    ("result/injection", "Look at where the text comes from; start a new session if you do not trust it, for this one is marked and asks more. For a source that you trust, add a rule for this tool (firedoor rules add allow)."),
    ("result/secret", "Keep the credential out of what the tool returns; it is remembered, and asked about when it would leave through another tool."),
    ("result/unread", "Look at what the result holds encoded or compressed; start a new session if you do not trust where it comes from."),
    ("sandbox/", "If the server needs it, grant it (firedoor grants add) and restart its client; else nothing needs to be done."),
    ("sandbox/host", "Answer the question, or grant the host (firedoor grants add --host) if the server needs it."),
    ("sandbox/limits", "Restart the client; if the server needs more than its limits allow, give it a profile with higher ones."),
];

/// What would make a finding of this detector go away.
pub fn remedy(detector: &str) -> Option<&'static str> {
    let names = |name: &str| name == detector || name.ends_with('/') && detector.starts_with(name);
    REMEDIES.iter().filter(|(name, _)| names(name)).max_by_key(|(name, _)| name.len()).map(|(_, says)| *says)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_wins() {
        for (detector, want) in [
            ("call/secret", Some("Put the credential")),
            ("call/sql-injection", Some("Let the agent make the call")),
            ("definition/injection", Some("Read the tool's definition")),
            ("sandbox/file", Some("If the server needs it")),
            ("call", None),
            ("never/heard-of", None),
        ] {
            let got = remedy(detector);
            assert!(
                got.is_some() == want.is_some() && got.unwrap_or("").starts_with(want.unwrap_or("")),
                "{detector}: {got:?}"
            );
        }
        let mut names: Vec<&str> = REMEDIES.iter().map(|(name, _)| *name).collect();
        assert!(names.is_sorted());
        names.dedup();
        assert_eq!(names.len(), REMEDIES.len());
        assert!(REMEDIES.iter().all(|(_, says)| says.ends_with('.')));
    }
}

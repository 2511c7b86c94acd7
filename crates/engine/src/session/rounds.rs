//! Calls in several rounds (MCP 2026-07-28, multi round-trip requests): a server answers a call with what it wants to know
//! first, and the client makes the call again, with the answers and the server's own state beside the arguments.

use std::borrow::Cow;

use firedoor_model::{
    Finding,
    wire::{Object, unescape},
};

use super::upstream::subject_member;

/// The client's answers, and what the server wants to have back as it was.
const RESPONSES: &str = "inputResponses";
const STATE: &str = "requestState";

/// The state that a call brings back, when it is nothing but another round: whatever else stands beside its arguments may
/// mean something to the server.
pub fn state<'a>(params: Option<&'a str>, method: &str) -> Option<Cow<'a, str>> {
    let (params, subject) = (params.and_then(Object::parse)?, subject_member(method)?);
    let known = [subject, "arguments", "_meta", RESPONSES, STATE];
    if !params.0.iter().all(|(name, _)| known.contains(&name.as_ref())) {
        return None;
    }
    unescape(params.get_unique(STATE).ok()??)
}

/// The state that the next round of a call has to bring back, when this is its server's question.
pub fn awaited(result: &str) -> Option<Cow<'_, str>> {
    let result = Object::parse(result)?;
    let member = |name: &str| result.get_unique(name).ok().flatten().and_then(unescape);
    if member("resultType")? == "input_required" { member(STATE) } else { None }
}

/// What stands in a call's params beside the arguments, as one object: the client's answers, and whatever a server may
/// understand in addition. A state that is known to be the server's own word tells it nothing.
pub fn beside(params: Option<&str>, method: &str, state_is_known: bool) -> Option<String> {
    let (params, subject) = (params.and_then(Object::parse)?, subject_member(method)?);
    let others = params.0.iter().filter(|(name, _)| {
        let name = name.as_ref();
        !([subject, "arguments", "_meta"].contains(&name) || state_is_known && name == STATE)
    });
    let others: Vec<String> =
        others.map(|(name, value)| format!("{}:{value}", serde_json::Value::from(name.as_ref()))).collect();
    (!others.is_empty()).then(|| format!("{{{}}}", others.join(",")))
}

/// What was found beside the arguments and not in them. What the agent has read before is found in both.
pub fn news(more: Vec<Finding>, found: &[Finding]) -> Vec<Finding> {
    let known: Vec<Finding> = found.iter().map(Finding::ageless).collect();
    more.into_iter().filter(|finding| !known.contains(&finding.ageless())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_round_brings_back() {
        let check = |params: &str, want_state: Option<&str>, want_beside: [Option<&str>; 2]| {
            assert_eq!(state(Some(params), "tools/call").as_deref(), want_state, "{params}");
            let got = [false, true].map(|known| beside(Some(params), "tools/call", known));
            assert_eq!(got.each_ref().map(Option::as_deref), want_beside, "{params}");
        };
        check(r#"{"name":"t","arguments":{"a":1},"_meta":{}}"#, None, [None, None]);
        check(
            r#"{"name":"t","requestState":"s\u00e9","inputResponses":{"k": {"a":1}}}"#,
            Some("sé"),
            [
                Some(r#"{"requestState":"s\u00e9","inputResponses":{"k": {"a":1}}}"#),
                Some(r#"{"inputResponses":{"k": {"a":1}}}"#),
            ],
        );
        check(r#"{"name":"t","requestState":"s"}"#, Some("s"), [Some(r#"{"requestState":"s"}"#), None]);
        let both = |all| [Some(all), Some(all)];
        check(r#"{"name":"t","inputResponses":{}}"#, None, both(r#"{"inputResponses":{}}"#));
        check(r#"{"name":"t","q\"":1}"#, None, both(r#"{"q\"":1}"#));
        // Which of the two a server takes is not known, nor what another member means to it.
        let twice = r#"{"requestState":"a","requestState":"b"}"#;
        check(r#"{"name":"t","requestState":"a","requestState":"b"}"#, None, [Some(twice), None]);
        check(
            r#"{"name":"t","requestState":"a","task":1}"#,
            None,
            [Some(r#"{"requestState":"a","task":1}"#), Some(r#"{"task":1}"#)],
        );
        check(r#"{"name":"t","requestState":1}"#, None, [Some(r#"{"requestState":1}"#), None]);
        assert_eq!(state(Some(r#"{"requestState":"a"}"#), "tools/list"), None);
        assert_eq!(beside(None, "tools/call", false), None);
    }

    #[test]
    fn what_a_server_waits_for() {
        for (result, want) in [
            (r#"{"resultType":"input_required","inputRequests":{},"requestState":"s"}"#, Some("s")),
            (r#"{"resultType":"input_required","inputRequests":{}}"#, None),
            (r#"{"resultType":"complete","requestState":"s"}"#, None),
            (r#"{"requestState":"s"}"#, None),
            (r#"{"resultType":"input_required","requestState":"a","requestState":"b"}"#, None),
            (r#""requestState""#, None),
        ] {
            assert_eq!(awaited(result).as_deref(), want, "{result}");
        }
    }
}

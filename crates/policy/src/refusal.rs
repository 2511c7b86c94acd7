//! What the agent is told instead of a result.
//!
//! The texts say that this is no fault of the server and nothing to work around. They never contain matched text, a
//! secret, text of a server, or how a detector works.

use firedoor_model::{question::Ref, rule::Origin};
use serde_json::json;

use crate::decision::{NEW_TOOL, Reason};

/// Why a message does not go through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A decision of [`crate::judge`] to block.
    Policy(Reason),
    /// A human answered Block to this very call.
    User,
    /// A human was asked and has not answered yet; a later answer counts.
    Awaiting,
    /// The tool's definition changed and nobody has looked at it.
    Quarantined,
    /// The tool ran, but its result is not handed over.
    Withheld(Reason),
    /// Too many questions are open.
    Overflow,
    /// Questions about this server went unanswered, so it is not asked about any more in this session.
    Quiet,
    /// Firedoor was switched off before the user answered.
    Off,
    /// Something in Firedoor failed.
    EngineError,
    /// The message is larger than what can be inspected.
    TooLarge,
}

/// The text for the agent.
pub fn refusal(kind: &Refusal, reference: &Ref) -> String {
    const NO_RETRY: &str = "This is intended. Do not retry or reach the same result another way.";
    let blocked = format!("Blocked by Firedoor (local security policy), not by the server. Ref {reference}.");
    let review = format!("Tell the user; they can review it in Firedoor › Activity › {reference}.");
    let policy = |reason: &str| format!("{blocked}\nReason: {reason}\n{NO_RETRY}\n{review}");
    match kind {
        Refusal::Policy(Reason::Quarantined) | Refusal::Quarantined => format!(
            "{blocked}\nReason: this tool's definition changed, and the user has not accepted the change.\n\
             {NO_RETRY}\nTell the user; they can look at the change and accept it in Firedoor › Activity › {reference}."
        ),
        Refusal::Policy(reason) => policy(&sentence(reason)),
        Refusal::User => policy("the user was asked and refused this call."),
        Refusal::Awaiting => format!(
            "Held by Firedoor (local security policy), not by the server. Ref {reference}.\n\
             Reason: the user was asked to allow this call and has not answered yet. The call was not made.\n\
             Do not reach the same result another way.\n\
             Ask the user to answer in Firedoor › Activity › {reference}; when they have, retry exactly this call once."
        ),
        Refusal::Withheld(reason) => format!(
            "Result withheld by Firedoor (local security policy), not by the server. Ref {reference}.\n\
             Reason: {} The tool did run, and what it does has been done.\n\
             Do not call it again to get the result, and do not get it another way.\n{review}",
            sentence(reason)
        ),
        Refusal::Overflow => policy("too many calls wait for the user's answer already."),
        Refusal::Quiet => policy("calls of this kind need the user's answer, and earlier questions were not answered."),
        Refusal::Off => format!(
            "{blocked}\nReason: Firedoor was switched off before the user had answered. The call was not made.\n\
             Do not reach the same result another way."
        ),
        Refusal::EngineError => format!(
            "{blocked}\nReason: an internal error kept Firedoor from checking this message, so it was not passed on.\n\
             Do not reach the same result another way.\n{review}"
        ),
        Refusal::TooLarge => policy("the message is larger than what Firedoor can check."),
    }
}

/// One sentence about a reason, in words that give nothing away.
fn sentence(reason: &Reason) -> String {
    match reason {
        Reason::Rule { origin: Origin::Managed, .. } => "an administrator's rule does not allow it.",
        Reason::Rule { .. } => "a rule of the user does not allow it.",
        Reason::Denied { .. } => "the user refused the same thing earlier in this session.",
        Reason::Quarantined => "this tool's definition changed, and the user has not accepted the change.",
        Reason::NewTool => "this tool was never used before and needs the user's answer.",
        Reason::Finding { detector } => return of_detector(detector).to_owned(),
        Reason::Clean | Reason::Recorded | Reason::Round | Reason::SessionRule { .. } | Reason::Permit { .. } => {
            "the local security policy does not allow it."
        }
    }
    .to_owned()
}

fn of_detector(detector: &str) -> &'static str {
    match detector.split_once('/') {
        Some(("flow", "secret")) => "the call would send credential data to an address that is not approved.",
        Some(("flow", _)) => "the call would send private data to a place that is not approved for it.",
        Some(("call", _)) => "the call's arguments are not safe to pass on.",
        Some(("definition", _)) => "the server describes its tools in a way that is not safe to pass on.",
        Some(("engine", _)) => "an internal error kept Firedoor from checking this message.",
        Some(("result", _)) => "the server's answer holds text that is not safe to pass on.",
        _ if detector == NEW_TOOL => "this tool was never used before and needs the user's answer.",
        _ => "the local security policy does not allow it.",
    }
}

/// A refusal as the `result` of `tools/call`, raw JSON: the specification asks clients to hand such an error to the
/// model. `modern` is protocol revision 2026-07-28, where every result needs a `resultType`.
pub fn as_tool_result(text: &str, modern: bool) -> String {
    // `Value` prints strings with JSON escapes, and in one line.
    let text = json!(text);
    let kind = if modern { r#","resultType":"complete""# } else { "" };
    format!(r#"{{"content":[{{"type":"text","text":{text}}}],"isError":true{kind}}}"#)
}

/// A refusal as the `error` of any other request, raw JSON.
pub fn as_error(code: i64, text: &str) -> String {
    format!(r#"{{"code":{code},"message":{}}}"#, json!(text))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn text(kind: Refusal) -> String {
        refusal(&kind, &Ref("7F3A".into()))
    }

    fn finding(detector: &'static str) -> Reason {
        Reason::Finding { detector: detector.into() }
    }

    #[test]
    fn texts() {
        assert_snapshot!(text(Refusal::Policy(finding("flow/secret"))), @r"
        Blocked by Firedoor (local security policy), not by the server. Ref 7F3A.
        Reason: the call would send credential data to an address that is not approved.
        This is intended. Do not retry or reach the same result another way.
        Tell the user; they can review it in Firedoor › Activity › 7F3A.
        ");
        assert_snapshot!(text(Refusal::Policy(Reason::Rule { id: 1, origin: Origin::Managed })), @r"
        Blocked by Firedoor (local security policy), not by the server. Ref 7F3A.
        Reason: an administrator's rule does not allow it.
        This is intended. Do not retry or reach the same result another way.
        Tell the user; they can review it in Firedoor › Activity › 7F3A.
        ");
        assert_snapshot!(text(Refusal::Policy(Reason::Denied { reference: Ref("AAAA".into()) })), @r"
        Blocked by Firedoor (local security policy), not by the server. Ref 7F3A.
        Reason: the user refused the same thing earlier in this session.
        This is intended. Do not retry or reach the same result another way.
        Tell the user; they can review it in Firedoor › Activity › 7F3A.
        ");
        assert_snapshot!(text(Refusal::User), @r"
        Blocked by Firedoor (local security policy), not by the server. Ref 7F3A.
        Reason: the user was asked and refused this call.
        This is intended. Do not retry or reach the same result another way.
        Tell the user; they can review it in Firedoor › Activity › 7F3A.
        ");
        assert_snapshot!(text(Refusal::Awaiting), @r"
        Held by Firedoor (local security policy), not by the server. Ref 7F3A.
        Reason: the user was asked to allow this call and has not answered yet. The call was not made.
        Do not reach the same result another way.
        Ask the user to answer in Firedoor › Activity › 7F3A; when they have, retry exactly this call once.
        ");
        assert_snapshot!(text(Refusal::Quarantined), @r"
        Blocked by Firedoor (local security policy), not by the server. Ref 7F3A.
        Reason: this tool's definition changed, and the user has not accepted the change.
        This is intended. Do not retry or reach the same result another way.
        Tell the user; they can look at the change and accept it in Firedoor › Activity › 7F3A.
        ");
        assert_snapshot!(text(Refusal::Withheld(finding("result/injection"))), @r"
        Result withheld by Firedoor (local security policy), not by the server. Ref 7F3A.
        Reason: the server's answer holds text that is not safe to pass on. The tool did run, and what it does has been done.
        Do not call it again to get the result, and do not get it another way.
        Tell the user; they can review it in Firedoor › Activity › 7F3A.
        ");
        assert_snapshot!(text(Refusal::Overflow), @r"
        Blocked by Firedoor (local security policy), not by the server. Ref 7F3A.
        Reason: too many calls wait for the user's answer already.
        This is intended. Do not retry or reach the same result another way.
        Tell the user; they can review it in Firedoor › Activity › 7F3A.
        ");
        assert_snapshot!(text(Refusal::Quiet), @r"
        Blocked by Firedoor (local security policy), not by the server. Ref 7F3A.
        Reason: calls of this kind need the user's answer, and earlier questions were not answered.
        This is intended. Do not retry or reach the same result another way.
        Tell the user; they can review it in Firedoor › Activity › 7F3A.
        ");
        assert_snapshot!(text(Refusal::EngineError), @r"
        Blocked by Firedoor (local security policy), not by the server. Ref 7F3A.
        Reason: an internal error kept Firedoor from checking this message, so it was not passed on.
        Do not reach the same result another way.
        Tell the user; they can review it in Firedoor › Activity › 7F3A.
        ");
        assert_snapshot!(text(Refusal::TooLarge), @r"
        Blocked by Firedoor (local security policy), not by the server. Ref 7F3A.
        Reason: the message is larger than what Firedoor can check.
        This is intended. Do not retry or reach the same result another way.
        Tell the user; they can review it in Firedoor › Activity › 7F3A.
        ");
    }

    #[test]
    fn detectors_are_not_named() {
        for detector in
            ["flow/secret", "flow/x", "call/x", "definition/x", "result/x", "engine/failed", NEW_TOOL, "zzz"]
        {
            let text = text(Refusal::Policy(finding(detector)));
            assert!(!text.contains(detector), "{text}");
        }
    }

    #[test]
    fn raw_json_is_one_line_and_escaped() {
        for modern in [false, true] {
            let raw = as_tool_result("a \"b\"\n\\c\u{1}", modern);
            assert!(!raw.contains('\n'));
            let want = json!({"content": [{"type": "text", "text": "a \"b\"\n\\c\u{1}"}], "isError": true});
            let mut got: serde_json::Value = serde_json::from_str(&raw).unwrap();
            let kind = got.as_object_mut().and_then(|o| o.remove("resultType"));
            assert_eq!((got, kind), (want, modern.then(|| json!("complete"))));
        }
        assert_eq!(as_error(-32603, "x\"y"), r#"{"code":-32603,"message":"x\"y"}"#);
    }
}

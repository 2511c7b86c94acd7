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
            "{blocked}\nReason: this tool's definition changed since the user accepted it, so it is in quarantine.\n\
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
        Reason::Quarantined => "this tool's definition changed since the user accepted it.",
        Reason::NewTool => "this tool was never used before and needs the user's answer.",
        Reason::Finding { detector } => return of_detector(detector).to_owned(),
        Reason::Clean | Reason::Recorded | Reason::SessionRule { .. } | Reason::Permit { .. } => {
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

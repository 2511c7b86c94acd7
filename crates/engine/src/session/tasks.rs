//! Calls whose results come later: a server may answer with a task, whose result is asked for by another request (MCP
//! 2025-11-25 "Tasks", 2026-07-28 `io.modelcontextprotocol/tasks`). The result is then looked at as the call's own.

use std::{cell::RefCell, collections::VecDeque};

use firedoor_model::{
    Digest,
    wire::{Object, unescape},
};

use super::pending::Asked;

/// Most tasks remembered of one session; the oldest is forgotten first.
const MAX_TASKS: usize = 256;

/// The calls behind the tasks of one session, by their tasks' ids, which servers may choose as long as they like.
#[derive(Default)]
pub struct Tasks(RefCell<VecDeque<(Digest, Asked)>>);

impl Tasks {
    /// Remembers the call when its result is a task.
    pub fn answered(&self, asked: &Asked, result: &str) {
        let task = Object::parse(result).and_then(|r| r.get("task")).and_then(Object::parse);
        let Some(id) = task.and_then(|t| t.get("taskId")).and_then(unescape) else { return };
        let mut known = self.0.borrow_mut();
        known.push_back((Digest::of(id.as_bytes()), Asked { allowed: None, ..asked.clone() }));
        if known.len() > MAX_TASKS {
            known.pop_front();
        }
    }

    /// The call behind the task that a request is about.
    pub fn behind(&self, method: &str, params: Option<&str>) -> Option<Asked> {
        if !matches!(method, "tasks/result" | "tasks/get" | "tasks/update") {
            return None;
        }
        let id = params.and_then(Object::parse).and_then(|p| p.get("taskId")).and_then(unescape)?;
        let id = Digest::of(id.as_bytes());
        self.0.borrow().iter().rev().find(|(known, _)| *known == id).map(|(_, asked)| asked.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_stands_for_its_call() {
        let tasks = Tasks::default();
        let asked = |subject: &str| Asked { subject: subject.into(), ..Asked::default() };
        tasks.answered(&asked("plain"), r#"{"content":[]}"#);
        tasks.answered(&asked("read"), r#"{"task":{"taskId":"t\u0031","status":"working"}}"#);
        let behind = |method: &str, params: &str| tasks.behind(method, Some(params)).map(|a| a.subject);
        assert_eq!(behind("tasks/result", r#"{"taskId":"t1"}"#), Some("read".into()));
        assert_eq!(behind("tasks/result", r#"{"taskId":"other"}"#), None);
        let long = "t".repeat(1 << 20);
        tasks.answered(&asked("long"), &format!(r#"{{"task":{{"taskId":"{long}"}}}}"#));
        assert_eq!(behind("tasks/result", &format!(r#"{{"taskId":"{long}"}}"#)), Some("long".into()));
        assert_eq!(tasks.0.borrow()[1].0, Digest::of(long.as_bytes()), "an id is kept in few bytes");
        assert_eq!(behind("tools/call", r#"{"taskId":"t1"}"#), None);
        for n in 0..2 * MAX_TASKS {
            tasks.answered(&asked("x"), &format!(r#"{{"task":{{"taskId":"n{n}"}}}}"#));
        }
        assert_eq!((tasks.0.borrow().len(), behind("tasks/get", r#"{"taskId":"t1"}"#)), (MAX_TASKS, None));
    }
}

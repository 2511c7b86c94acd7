//! What a call is given, read once for most of what judges it.

use std::borrow::Cow;

use firedoor_model::wire::{Leaf, Leaves};

use crate::Call;

/// Most strings and numbers of one call. What is beyond them makes the call a question.
const MAX_LEAVES: usize = 1 << 20;

/// The arguments of a call.
pub(crate) struct Arguments<'a> {
    /// As they were sent; empty where there are none.
    pub(crate) raw: &'a str,
    /// Every string and number of them, in order.
    pub(crate) leaves: Vec<Leaf<'a>>,
    /// Names of the outermost object's members.
    pub(crate) names: Vec<Cow<'a, str>>,
    /// Whether a string or number stands in a container within another.
    pub(crate) nested: bool,
    /// There are more than are read: they would take many times the memory that the message takes.
    pub(crate) cut: bool,
}

impl<'a> Arguments<'a> {
    pub(crate) fn of(call: &Call<'a>) -> Self {
        let raw = call.arguments.unwrap_or_default();
        let (mut walk, mut leaves, mut names, mut nested) = (Leaves::of(raw), Vec::new(), Vec::new(), false);
        while let Some(leaf) = walk.next() {
            if leaves.len() == MAX_LEAVES {
                return Self { raw, leaves, names, nested, cut: true };
            }
            match walk.depth() {
                1 if leaf.key => names.push(leaf.text.clone()),
                depth => nested |= depth > 1,
            }
            leaves.push(leaf);
        }
        Self { raw, leaves, names, nested, cut: false }
    }

    /// Those that are values.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Leaf<'a>> {
        self.leaves.iter().filter(|leaf| !leaf.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Inspector, Memory,
        privacy::tests::{call, entry},
    };

    #[test]
    fn what_is_not_read_is_a_question() {
        let (inspector, entry) = (Inspector::new(), entry("x"));
        let found = |count: usize| {
            let arguments = format!("[{}1]", "1,".repeat(count - 1));
            let call = call(&inspector, &entry, "send", &arguments);
            assert_eq!(Arguments::of(&call).leaves.len(), count.min(MAX_LEAVES));
            let found = inspector.call(&mut Memory::default(), &call);
            found.iter().any(|finding| finding.detector == "flow/unchecked")
        };
        assert_eq!([found(3), found(MAX_LEAVES), found(MAX_LEAVES + 1)], [false, false, true]);
    }
}

//! What a call is given, read once for all that judge it.

use std::borrow::Cow;

use firedoor_model::wire::{Leaf, Leaves};

use crate::Call;

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
}

impl<'a> Arguments<'a> {
    pub(crate) fn of(call: &Call<'a>) -> Self {
        let raw = call.arguments.unwrap_or_default();
        let (mut walk, mut leaves, mut names, mut nested) = (Leaves::of(raw), Vec::new(), Vec::new(), false);
        while let Some(leaf) = walk.next() {
            match walk.depth() {
                1 if leaf.key => names.push(leaf.text.clone()),
                depth => nested |= depth > 1,
            }
            leaves.push(leaf);
        }
        Self { raw, leaves, names, nested }
    }

    /// Those that are values.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Leaf<'a>> {
        self.leaves.iter().filter(|leaf| !leaf.key)
    }
}

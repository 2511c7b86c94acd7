//! What is remembered under one label, and which of it is forgotten first.

use std::collections::VecDeque;

use firedoor_model::EntryId;

/// What is remembered under one label, by server, oldest first. A full memory forgets the oldest of the server that fills
/// most of it, so that no server can wash out what came from another.
#[derive(Default)]
pub(super) struct Class {
    shares: Vec<Share>,
    pub(super) items: usize,
    /// Bytes of folded text.
    pub(super) text: usize,
    /// What all of it costs.
    pub(super) cost: usize,
}

/// What came from one server.
struct Share {
    entry: EntryId,
    items: VecDeque<u32>,
    cost: usize,
}

impl Class {
    pub(super) fn push(&mut self, entry: &EntryId, id: u32, text: usize, cost: usize) {
        self.items += 1;
        self.text += text;
        self.cost += cost;
        match self.shares.iter_mut().find(|share| share.entry == *entry) {
            Some(share) => {
                share.items.push_back(id);
                share.cost += cost;
            }
            None => self.shares.push(Share { entry: entry.clone(), items: VecDeque::from([id]), cost }),
        }
    }

    /// So many items of each server, the latest first.
    pub(super) fn latest(&self, most: usize) -> impl Iterator<Item = u32> {
        self.shares.iter().flat_map(move |share| share.items.iter().rev().take(most).copied()).take(most)
    }

    /// The oldest of the server that fills most. What came `again` is put behind its others first.
    pub(super) fn next_to_go(&mut self, mut again: impl FnMut(u32) -> bool) -> Option<u32> {
        let items = &mut self.shares.iter_mut().max_by_key(|share| share.cost)?.items;
        while again(*items.front()?) {
            items.rotate_left(1);
        }
        items.front().copied()
    }

    /// Takes out what [`Class::next_to_go`] named.
    pub(super) fn pop(&mut self, entry: &EntryId, text: usize, cost: usize) {
        self.items -= 1;
        self.text -= text;
        self.cost -= cost;
        if let Some(at) = self.shares.iter().position(|share| share.entry == *entry)
            && let Some(share) = self.shares.get_mut(at)
        {
            share.items.pop_front();
            share.cost -= cost;
            if share.items.is_empty() {
                self.shares.swap_remove(at);
            }
        }
    }
}

//! Which open requests came first.

use std::collections::{BTreeMap, HashMap};

/// Ids in the order in which they came.
#[derive(Default)]
pub struct Ages {
    next: u64,
    by_age: BTreeMap<u64, String>,
    ages: HashMap<String, u64>,
}

impl Ages {
    /// One came. One that is there already stays where it is.
    pub fn add(&mut self, id: &str) {
        if !self.ages.contains_key(id) {
            self.by_age.insert(self.next, id.to_owned());
            self.ages.insert(id.to_owned(), self.next);
            self.next += 1;
        }
    }

    /// One is over.
    pub fn remove(&mut self, id: &str) {
        if let Some(age) = self.ages.remove(id) {
            self.by_age.remove(&age);
        }
    }

    /// Takes the oldest until no more than `most` are left.
    pub fn above(&mut self, most: usize) -> Vec<String> {
        let mut over = Vec::new();
        while self.by_age.len() > most {
            let Some((_, id)) = self.by_age.pop_first() else { break };
            self.ages.remove(&id);
            over.push(id);
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_first() {
        let mut ages = Ages::default();
        ["10", "9", "1", "10"].iter().for_each(|id| ages.add(id));
        ages.remove("9");
        ages.add("9");
        assert_eq!(ages.above(3), Vec::<String>::new());
        assert_eq!(ages.above(1), ["10", "1"]);
        assert_eq!((ages.by_age.len(), ages.ages.len()), (1, 1));
    }
}

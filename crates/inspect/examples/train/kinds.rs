//! Sentences drawn from `kinds.toml`: kinds of attacks, and honest texts with the same words.

use std::collections::BTreeMap;

/// Slots inside slots that are filled.
const MAX_DEPTH: usize = 4;

/// The file: each name with its lines.
pub struct Kinds(BTreeMap<String, Vec<String>>);

/// A fixed sequence (Knuth's MMIX generator): the same file gives the same texts.
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n.max(1)
    }
}

impl Kinds {
    pub fn load() -> Self {
        Self(toml::from_str(include_str!("kinds.toml")).unwrap())
    }

    /// One text of a kind.
    pub fn one(&self, kind: &str, draw: &mut Draw) -> String {
        self.fill(&format!("{{{kind}}}"), draw, 0)
    }

    fn fill(&self, template: &str, draw: &mut Draw, depth: usize) -> String {
        let mut out = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            out.push_str(before);
            let slot = after.split_once('}').and_then(|(name, tail)| Some((self.0.get(name)?, tail)));
            match slot {
                Some((lines, tail)) if depth <= MAX_DEPTH => {
                    out.push_str(&self.fill(&lines[draw.below(lines.len())], draw, depth + 1));
                    rest = tail;
                }
                _ => {
                    out.push('{');
                    rest = after;
                }
            }
        }
        out + rest
    }
}

//! Arguments for a person's eyes: with the middle of every credential masked.

use firedoor_model::finding::mask;

use crate::Inspector;

impl Inspector {
    /// The raw JSON `raw`, with credentials in its strings masked. For showing only: the result need not be JSON.
    pub fn masked(&self, raw: &str) -> String {
        let mut out = String::with_capacity(raw.len());
        let mut copied = 0;
        let mut cut: Vec<(usize, usize, String)> = Vec::new();
        self.each_string(raw, &mut |leaf, text, hits, _, _| {
            let (start, end) = leaf.span;
            let token = raw.get(start..end).unwrap_or_default();
            for hit in hits {
                let value = text.get(hit.span.0..hit.span.1).unwrap_or_default();
                let value = String::from_utf8_lossy(value).into_owned();
                // Where the value is written with escapes it is not found, and the whole string goes.
                match token.find(&value) {
                    // A hit leaves out a fixed prefix, which shows the kind already.
                    Some(at) => cut.push((start + at, start + at + value.len(), mask(""))),
                    None => cut.push((start, end, format!("\"{}\"", mask("")))),
                }
            }
        });
        cut.sort();
        for (start, end, shown) in cut {
            if start >= copied {
                out.push_str(raw.get(copied..start).unwrap_or_default());
                out.push_str(&shown);
            }
            copied = copied.max(end);
        }
        out.push_str(raw.get(copied..).unwrap_or_default());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_masked_and_the_rest_stays() {
        let inspector = Inspector::new();
        let key = ["AKIA", "6OJW25SI6WORYQ3L"].concat();
        let check = |raw: String, want: &str| assert_eq!(inspector.masked(&raw), want);
        check(r#"{"a": 1, "b":"plain"}"#.into(), r#"{"a": 1, "b":"plain"}"#);
        check(format!(r#"{{"body":"key {key} end","n":2}}"#), r#"{"body":"key AKIA•••• end","n":2}"#);
        check(format!(r#"{{"body":"\u0041{}"}}"#, &key[1..]), r#"{"body":"\u0041KIA••••"}"#);
    }
}

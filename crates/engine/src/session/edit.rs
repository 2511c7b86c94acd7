//! Changes to a message by byte spans. Nothing is serialised anew: what is not removed stays as it came.

/// Removes elements of one JSON array from `json`, each with the comma that belongs to it. `spans` are the byte offsets
/// of all its elements, in order; `gone` says which to remove.
pub fn remove_elements(json: &str, spans: &[(usize, usize)], gone: impl Fn(usize) -> bool) -> String {
    let mut out = String::with_capacity(json.len());
    let mut copied = 0;
    for (i, &(start, end)) in spans.iter().enumerate() {
        if !gone(i) {
            continue;
        }
        // With the comma before it if an element that stays stands before, else with the one after it.
        let stays_before = (0..i).rev().find(|j| !gone(*j));
        let (from, to) = match (stays_before, spans.get(i + 1)) {
            (Some(_), _) => (spans.get(i.wrapping_sub(1)).map_or(start, |s| s.1), end),
            (None, Some(next)) => (start, next.0),
            (None, None) => (start, end),
        };
        out.push_str(json.get(copied..from.max(copied)).unwrap_or_default());
        copied = to.max(copied);
    }
    out.push_str(json.get(copied..).unwrap_or_default());
    out
}

/// `line` with the bytes of `part`, which lies in it, replaced.
pub fn replace_part(line: &str, part: &str, new: &str) -> String {
    let start = (part.as_ptr() as usize).wrapping_sub(line.as_ptr() as usize).min(line.len());
    let end = (start + part.len()).min(line.len());
    [line.get(..start).unwrap_or_default(), new, line.get(end..).unwrap_or_default()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_go_with_their_commas() {
        let json = r#"{"tools": [ "a" , "b", "c" ],"x":1}"#;
        let spans: Vec<_> = ["\"a\"", "\"b\"", "\"c\""].map(|t| json.find(t).map(|i| (i, i + 3)).unwrap()).to_vec();
        let check = |gone: &[usize], want: &str| {
            let out = remove_elements(json, &spans, |i| gone.contains(&i));
            assert_eq!(out, want);
            serde_json::from_str::<serde_json::Value>(&out).unwrap();
        };
        check(&[], json);
        check(&[0], r#"{"tools": [ "b", "c" ],"x":1}"#);
        check(&[1], r#"{"tools": [ "a", "c" ],"x":1}"#);
        check(&[2], r#"{"tools": [ "a" , "b" ],"x":1}"#);
        check(&[0, 1], r#"{"tools": [ "c" ],"x":1}"#);
        check(&[1, 2], r#"{"tools": [ "a" ],"x":1}"#);
        check(&[0, 2], r#"{"tools": [ "b" ],"x":1}"#);
        check(&[0, 1, 2], r#"{"tools": [  ],"x":1}"#);
    }

    #[test]
    fn parts_are_replaced_in_place() {
        let line = "abcdef".to_owned();
        assert_eq!(replace_part(&line, &line[2..4], "XYZ"), "abXYZef");
        assert_eq!(replace_part(&line, &line[..0], "X"), "Xabcdef");
    }
}

//! The document readers, for the fuzz targets in `tests/fuzz`: bytes in, and a panic when a property does not hold.

use crate::{
    catalog::Syntax,
    document::{self, Shape, Str},
    form::Form,
};

/// What is found lies in the text, at borders of characters. The first byte chooses the syntax.
pub fn document(bytes: &[u8]) {
    let Some((syntax, text)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let syntaxes = [Syntax::Json, Syntax::Jsonc, Syntax::Toml, Syntax::JsonComments, Syntax::Json5, Syntax::Yaml];
    let syntax = syntaxes[usize::from(*syntax) % syntaxes.len()];
    let inside = |found: &Str| assert!(text.get(found.span.clone()).is_some(), "{found:?}");
    for path in [&["mcpServers"][..], &["projects", "*", "mcpServers"], &["mcp_servers"], &[]] {
        let path: Vec<String> = path.iter().map(|p| (*p).to_owned()).collect();
        let forms = [Form::default(), Form { name: Some("name".into()), ..Form::default() }];
        for server in forms.iter().flat_map(|form| document::servers(text, syntax, &path, form).unwrap_or_default()) {
            inside(&server.name);
            if let Shape::Stdio(stdio) = server.shape {
                inside(&stdio.command);
                stdio.args().iter().for_each(inside);
                assert!(stdio.members.get(stdio.command_at).is_some());
                for member in &stdio.members {
                    assert!(text.get(member.key.clone()).is_some() && text.get(member.value.clone()).is_some());
                }
            }
        }
        let _ = document::keys(text, syntax, &path);
    }
    let _ = document::strings(text, syntax, |_, span, _| assert!(text.get(span).is_some()));
}

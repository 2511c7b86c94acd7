//! Round trips over generated documents: any white space, comments, repeated keys, escapes.

use std::fs;

use proptest::prelude::*;

use crate::home::{Home, one};

/// White space and, in JSONC, comments.
fn gap(comments: bool) -> BoxedStrategy<String> {
    let blank = "[ \t\r\n]{0,3}";
    if comments {
        prop_oneof![4 => blank.prop_map(String::from), 1 => "/\\*[a-z,:\"{}\\[]{0,6}\\*/", 1 => "//[a-z,:\"{}\\\\]{0,6}\n"].boxed()
    } else {
        blank.prop_map(String::from).boxed()
    }
}

fn string() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z@./_-]{0,8}".prop_map(|s| format!("\"{s}\"")),
        prop_oneof![Just("\\u00e9"), Just("\\/"), Just("\\\""), Just("\\\\"), Just("\\ud83d\\ude80"), Just("é🚀")]
            .prop_map(|s| format!("\"x{s}\"")),
    ]
}

/// Items between brackets, with a gap at every place and perhaps a trailing comma.
fn list(open: char, close: char, items: Vec<String>, gaps: &[String], trailing: bool) -> String {
    let mut gaps = gaps.iter().cycle();
    let mut gap = || gaps.next().cloned().unwrap_or_default();
    let mut out = String::from(open);
    let n = items.len();
    for (i, item) in items.into_iter().enumerate() {
        out += &(gap() + &item + &gap());
        if i + 1 < n || trailing {
            out.push(',');
        }
    }
    out += &gap();
    out.push(close);
    out
}

fn entry(jsonc: bool) -> impl Strategy<Value = String> {
    let command = prop_oneof![Just("\"npx\""), Just("\"\\u006epx\""), Just("\"./run me\""), Just("\"npx -y x\"")];
    let member = prop_oneof![
        command.prop_map(|c| ("command", c.to_owned())),
        (prop::collection::vec(string(), 0..4), prop::collection::vec(gap(jsonc), 1..4), any::<bool>())
            .prop_map(move |(s, g, t)| ("args", list('[', ']', s, &g, t && jsonc))),
        Just(("env", "{\"A\":\"1\"}".to_owned())),
        Just(("timeout", "1e400".to_owned())),
    ];
    (prop::collection::vec(member, 0..6), prop::collection::vec(gap(jsonc), 1..6), any::<bool>()).prop_map(
        move |(mut members, gaps, trailing)| {
            if !members.iter().any(|(k, _)| *k == "command") {
                members.push(("command", "\"x\"".into()));
            }
            let colon = gaps.first().cloned().unwrap_or_default();
            let members = members.into_iter().map(|(k, v)| format!("\"{k}\"{colon}:{colon}{v}")).collect();
            list('{', '}', members, &gaps, trailing && jsonc)
        },
    )
}

/// An entry whose command is an array.
fn array(jsonc: bool) -> impl Strategy<Value = String> {
    let command = (prop::collection::vec(string(), 0..4), prop::collection::vec(gap(jsonc), 1..4), any::<bool>());
    (command, prop::collection::vec(gap(jsonc), 1..6), any::<bool>(), any::<bool>()).prop_map(
        move |((mut words, inside, trailing), gaps, first, twice)| {
            words.insert(0, "\"\\u006epx\"".into());
            let command = format!("\"command\":{}", list('[', ']', words, &inside, trailing && jsonc));
            let mut members = vec!["\"type\":\"local\"".to_owned(), command];
            if first {
                members.reverse();
            }
            if twice {
                members.insert(0, "\"command\":\"x\"".to_owned());
            }
            list('{', '}', members, &gaps, false)
        },
    )
}

fn document(jsonc: bool) -> impl Strategy<Value = String> {
    let any_entry = prop_oneof![3 => entry(jsonc), 1 => array(jsonc)];
    let servers =
        prop::collection::vec((prop_oneof![Just("a"), Just("b"), Just("\\u0061"), Just("c d")], any_entry), 1..4);
    (servers, prop::collection::vec(gap(jsonc), 1..5), any::<bool>(), any::<bool>()).prop_map(
        move |(servers, gaps, bom, twice)| {
            let servers: Vec<String> = servers.into_iter().map(|(k, v)| format!("\"{k}\":{v}")).collect();
            let map = format!("\"mcpServers\":{}", list('{', '}', servers, &gaps, false));
            let mut members = vec!["\"x\":[1,{\"mcpServers\":2}]".to_owned(), map.clone()];
            if twice {
                members.push(map);
            }
            let text = list('{', '}', members, &gaps, false);
            if bom { format!("\u{feff}{text}") } else { text }
        },
    )
}

/// One server in TOML: a header, dotted keys or braces.
fn table(name: &'static str, form: u8) -> impl Strategy<Value = String> {
    let command = prop_oneof![Just("\"npx\""), Just("'C:\\x'"), Just("\"\"\"\nn\\u0070x\"\"\""), Just("'''a\r\nb'''")];
    let eq = prop_oneof![Just("="), Just(" = "), Just("\t=")];
    let end = prop_oneof![Just("\n"), Just("\r\n"), Just(" # a, \"b\" ]\n"), Just("\n\n")];
    let item = prop_oneof![Just("\"a\""), Just("'b,#'"), Just("\"\"\"c\n\"\"\"")];
    let space = prop_oneof![Just(""), Just(" "), Just("\n  "), Just(" # ,]\n"), Just("\r\n")];
    let args = prop::option::of((prop::collection::vec((space.clone(), item, space), 0..4), any::<bool>()));
    (command, eq, end, args, "[ \t]{0,2}", any::<bool>(), any::<bool>()).prop_map(
        move |(command, eq, end, args, indent, first, env)| {
            let args = args.map(|(items, trailing)| {
                let n = items.len();
                let item = |(i, (a, v, b)): (usize, (&str, &str, &str))| {
                    format!("{a}{v}{b}{}", if i + 1 < n || trailing { "," } else { "" })
                };
                format!("args{eq}[{}]", items.into_iter().enumerate().map(item).collect::<String>())
            });
            let mut members = vec![format!("command{eq}{command}")];
            members.extend(args);
            if env {
                members.push("env = {A = '1'}".to_owned());
            }
            if first {
                members.reverse();
            }
            match form {
                0 => {
                    let lines: String = members.iter().map(|m| format!("{indent}{m}{end}")).collect();
                    format!("[mcp_servers . {name}]{end}{lines}")
                }
                1 => members.iter().map(|m| format!("{indent}mcp_servers . {name}.{m}{end}")).collect(),
                _ => format!("mcp_servers.{name} = {{{indent}{}{indent}}}{end}", members.join(&format!(",{indent}"))),
            }
        },
    )
}

fn tables() -> impl Strategy<Value = String> {
    (table("a", 1), table("\"b c\"", 2), table("'d'", 0), table("\"é\"", 0), any::<bool>(), any::<bool>()).prop_map(
        |(a, b, c, d, bom, cut)| {
            let bom = if bom { "\u{feff}" } else { "" };
            let text = format!("{bom}# mcp_servers.no.command = 1\n{a}{b}x = \"[mcp_servers.y]\"\n{c}{d}");
            if cut { text.trim_end().to_owned() } else { text }
        },
    )
}

/// One server in YAML: its members on lines or between braces, arguments in three ways.
fn yaml_entry() -> impl Strategy<Value = (Vec<String>, bool)> {
    let command = prop_oneof![Just("npx"), Just("'it''s'"), Just("\"\\u006epx\""), Just("./run me"), Just("é#x:y")];
    let word = prop_oneof![Just("-y"), Just("'a, b'"), Just("\"\\t\""), Just("a#b"), Just("é🚀"), Just("\"8\"")];
    let behind = prop_oneof![3 => Just(""), 1 => Just(" "), 1 => Just(" # c, [")];
    let args = prop::option::of((prop::collection::vec(word, 0..4), 0..3usize));
    (command, args, behind, any::<bool>(), any::<bool>()).prop_map(|(command, args, behind, flow, first)| {
        let args = args.map(|(words, form)| match form {
            _ if flow || words.is_empty() => format!("args: [{}]", words.join(" , ")),
            0 => format!("args: [{}]{behind}", words.join(",\n      ")),
            1 => format!("args:{behind}\n    - {}", words.join("\n    - ")),
            _ => format!("args:\n      -  {}{behind}", words.join("\n\n      -  ")),
        });
        let comment = if flow { "" } else { behind };
        let mut members = vec![format!("command: {command}{comment}")];
        members.extend(args);
        members.push("env: {A: \"1\"}".to_owned());
        if first {
            members.rotate_left(1);
        }
        (members, flow)
    })
}

/// A list or a map of servers, with other things around it.
fn yaml(list: bool) -> impl Strategy<Value = String> {
    let entries = prop::collection::vec(yaml_entry(), 1..5);
    (entries, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(move |(entries, crlf, cut, start)| {
        let mut text = String::from(if start { "%YAML 1.2\n---\n" } else { "" });
        text += "x: &a {k: '\\'}\ny: *a\nmcpServers: # here\n";
        for (at, (members, flow)) in entries.into_iter().enumerate() {
            let name = ["a", "'b c'", "\"d\"", "é"][at % 4];
            text += &match (list, flow) {
                (true, true) => format!("  -  {{ name: {name}, {} }}\n", members.join(" , ")),
                (true, false) => format!("  - {}\n    name: {name}\n", members.join("\n    ")),
                (false, true) => format!("  {name}: {{{}}} # e\n", members.join(", ")),
                (false, false) => format!("  {name}:\n    {}\n\n", members.join("\n    ")),
            };
        }
        if cut {
            text.truncate(text.trim_end().len());
        } else {
            text += "last: |\n  mcpServers:\n  command: x\n";
        }
        if crlf { text.replace('\n', "\r\n") } else { text }
    })
}

fn check(place: &str, text: &str) -> Result<(), TestCaseError> {
    for forget in [false, true] {
        let home = Home::new();
        let path = home.write(place, text);
        prop_assert_eq!(home.problem(), "");
        one(home.protect(&[])).unwrap();
        prop_assert!(home.states().values().all(|s| s == "protected"), "{:?}", home.states());
        prop_assert!(home.protect(&[]).is_empty());
        if forget {
            home.forget();
        }
        one(home.restore(&[])).unwrap();
        prop_assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    Ok(())
}

/// Few cases, unless `PROPTEST_CASES` says how many.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(64);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn json(text in document(false)) {
        check("home/.claude.json", &text)?;
    }

    #[test]
    fn jsonc(text in document(true)) {
        check("home/.cursor/mcp.json", &text)?;
    }

    #[test]
    fn toml(text in tables()) {
        check("home/.codex/config.toml", &text)?;
    }

    #[test]
    fn yaml_lists(text in yaml(true)) {
        check("home/.continue/config.yaml", &text)?;
    }

    #[test]
    fn yaml_maps(text in yaml(false)) {
        check("work/librechat.yaml", &text)?;
    }

    #[test]
    fn json_with_comments(text in document(true)) {
        // What has a trailing comma or a byte order mark is not what this client reads.
        let home = Home::new();
        let path = home.write("home/.gemini/settings.json", &text);
        if home.problem().is_empty() {
            check("home/.gemini/settings.json", &text)?;
        } else {
            prop_assert!(home.protect(&[]).is_empty());
            prop_assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn no_bytes_make_it_fail(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let home = Home::new();
        let path = home.write("home/.cursor/mcp.json", &bytes);
        home.write("home/.claude.json", &bytes);
        home.write("home/.gemini/settings.json", &bytes);
        let toml = home.write("home/.codex/config.toml", &bytes);
        let yaml = home.write("home/.continue/config.yaml", &bytes);
        home.protect(&[]);
        prop_assert_eq!(fs::read(&path).unwrap(), &bytes[..]);
        prop_assert_eq!(fs::read(&yaml).unwrap(), &bytes[..]);
        prop_assert_eq!(fs::read(&toml).unwrap(), bytes);
    }
}

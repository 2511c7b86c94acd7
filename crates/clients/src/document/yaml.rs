//! YAML, as Continue, Goose and LibreChat read it. A key that stands twice is an error to their parsers, and so it is
//! here. What takes its value from elsewhere in the file (an alias, a merged map), or lends it to elsewhere (an anchor),
//! is never edited.

use std::collections::{HashMap, HashSet};

use granit_parser::{Event, Parser, ScalarStyle, StructureStyle};

use super::{
    Layout, MAX_SERVERS, Server, Shape, Span, Stdio, Str, SyntaxError,
    entry::{self, Field, Value},
    position, too_many,
};
use crate::form::Form;

/// Most nodes in one file.
const MAX_NODES: usize = 200_000;

struct Node {
    /// Without anchor and tag.
    span: Span,
    /// An anchor or a tag stands in front of it.
    marked: bool,
    kind: Kind,
}

enum Kind {
    Scalar(Scalar),
    List { all: Vec<Node>, flow: bool },
    Map { all: Vec<(Node, Node)>, flow: bool },
    Alias(usize),
}

struct Scalar {
    value: String,
    plain: bool,
    /// It stands on one line, so that its characters mean the same wherever they stand.
    line: bool,
}

/// A file, and what its anchors stand for as far as a variable's map needs it: names and plain values.
struct Tree {
    root: Option<Node>,
    anchors: HashMap<usize, Vec<(Str, Span, String)>>,
}

/// A map or list that has not ended.
struct Open {
    node: Node,
    anchor: usize,
    key: Option<Node>,
    keys: HashSet<String>,
}

pub(super) fn servers(text: &str, path: &[String], form: &Form) -> Result<Vec<Server>, SyntaxError> {
    let tree = parse(text)?;
    let Some(mut place) = tree.root.as_ref() else { return Ok(Vec::new()) };
    let mut lent = place.marked;
    for key in path {
        let Some(inside) = place.get(key) else { return Ok(Vec::new()) };
        place = inside;
        lent |= place.marked;
    }
    let named: Vec<(Str, &Node)> = match (&place.kind, &form.name) {
        (Kind::Map { all, .. }, _) => all.iter().filter_map(|(key, value)| Some((key.string()?, value))).collect(),
        (Kind::List { all, .. }, Some(key)) => all.iter().enumerate().map(|(at, n)| (name_of(n, key, at), n)).collect(),
        _ => Vec::new(),
    };
    if named.len() > MAX_SERVERS {
        return Err(too_many(text, place.span.start));
    }
    let server = |(name, node)| {
        let shape = if lent { odd(LENT) } else { tree.shape(text, node, form) };
        Server { project: None, name, shape }
    };
    Ok(named.into_iter().map(server).collect())
}

pub(super) fn strings(text: &str, mut each: impl FnMut(Option<&str>, Span, &str)) -> Result<(), SyntaxError> {
    fn walk(node: &Node, key: Option<&str>, each: &mut impl FnMut(Option<&str>, Span, &str)) {
        match &node.kind {
            Kind::Scalar(scalar) => each(key, node.span.clone(), &scalar.value),
            Kind::List { all, .. } => all.iter().for_each(|n| walk(n, key, each)),
            Kind::Map { all, .. } => all.iter().for_each(|(k, v)| walk(v, k.scalar().map(|s| s.value.as_str()), each)),
            Kind::Alias(_) => {}
        }
    }
    if let Some(root) = &parse(text)?.root {
        walk(root, None, &mut each);
    }
    Ok(())
}

const LENT: &str = "it carries an anchor or a tag (&, !), or stands inside of something that does";

fn odd(why: &str) -> Shape {
    Shape::Odd(why.to_owned())
}

fn name_of(node: &Node, key: &str, at: usize) -> Str {
    node.get(key)
        .filter(|name| name.scalar().is_some_and(|s| !s.plain || matches!(resolved(&s.value), Value::Text(_))))
        .and_then(Node::string)
        .unwrap_or_else(|| Str { span: node.span.start..node.span.start, value: (at + 1).to_string() })
}

impl Node {
    fn scalar(&self) -> Option<&Scalar> {
        match &self.kind {
            Kind::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    fn string(&self) -> Option<Str> {
        self.scalar().map(|s| Str { span: self.span.clone(), value: s.value.clone() })
    }

    fn get(&self, key: &str) -> Option<&Node> {
        let Kind::Map { all, .. } = &self.kind else { return None };
        all.iter().find(|(k, _)| k.scalar().is_some_and(|s| s.value == key)).map(|(_, value)| value)
    }
}

impl Tree {
    fn shape(&self, text: &str, node: &Node, form: &Form) -> Shape {
        let (Kind::Map { all, flow }, false) = (&node.kind, node.marked) else {
            return match node.kind {
                Kind::Alias(_) => odd("it is an alias (*) of another part of the file"),
                _ if node.marked => odd(LENT),
                _ => odd("it is not a map"),
            };
        };
        if node.get("<<").is_some() {
            return odd("it takes a part of itself from elsewhere in the file (<<)");
        }
        if form.inside.is_some() {
            return odd("its program stands in a map of its own, which no client has in YAML");
        }
        let layout = if *flow { Layout::Flow } else { Layout::Block };
        let fields: Vec<Field> = all.iter().filter_map(|(key, value)| self.field(key, value)).collect();
        let mut shape = entry::shape(layout, &fields, form);
        if let Shape::Remote(remote) = &mut shape
            && let Ok(parts) = &remote.parts
        {
            let line = all.iter().find(|(_, value)| value.span == parts.line.span);
            let vars = parts.vars.as_ref().and_then(|(at, _)| all.get(*at)).map(|(_, value)| value);
            let lent = vars.is_some_and(|vars| vars.marked || matches!(vars.kind, Kind::Alias(_)));
            match line.map(|(key, value)| fixed(text, layout, key, value, None)) {
                Some(None) if !lent => {}
                _ => remote.parts = Err("in YAML it is not written plainly enough".into()),
            }
        }
        if let (Shape::Stdio(stdio), Some(command)) = (&mut shape, node.get(&form.command)) {
            let args = node.get(&form.args);
            stdio.args_block = args.is_some_and(|args| matches!(args.kind, Kind::List { flow: false, .. }));
            let key = all.iter().find(|(_, value)| value.span == command.span).map(|(key, _)| key);
            if let Some(why) = key.and_then(|key| fixed(text, layout, key, command, args)) {
                return odd(why);
            }
            lend(stdio, node, form);
        }
        shape
    }

    fn field(&self, key: &Node, value: &Node) -> Option<Field> {
        Some(Field { key: key.string()?, span: value.span.clone(), value: self.value(value) })
    }

    fn value(&self, node: &Node) -> Value {
        match &node.kind {
            Kind::Scalar(scalar) if scalar.plain => resolved(&scalar.value),
            Kind::Scalar(scalar) => Value::Text(scalar.value.clone()),
            Kind::List { all, .. } => Value::List(all.iter().map(|n| (n.span.clone(), self.value(n))).collect()),
            Kind::Map { .. } if node.get("<<").is_some() => Value::Other,
            Kind::Map { all, .. } => Value::Map(all.iter().filter_map(|(k, v)| self.field(k, v)).collect()),
            Kind::Alias(anchor) => self.anchors.get(anchor).map_or(Value::Other, |all| {
                let field = |(key, span, value): &(Str, Span, String)| Field {
                    key: key.clone(),
                    span: span.clone(),
                    value: Value::Text(value.clone()),
                };
                Value::Map(all.iter().map(field).collect())
            }),
        }
    }
}

/// Leaves no text to values that cannot be replaced by themselves: lent to or by other parts of the file, or on several
/// lines. Only where they begin is still known.
fn lend(stdio: &mut Stdio, node: &Node, form: &Form) {
    let alone = |node: &Node| !node.marked && node.scalar().is_some_and(|s| s.line);
    let cut = |value: &mut Str| value.span.end = value.span.start;
    let vars = form.env.iter().find_map(|key| node.get(key)).filter(|map| !map.marked);
    for (name, value) in &mut stdio.env {
        if !vars.and_then(|map| map.get(name)).is_some_and(alone) {
            value.iter_mut().for_each(cut);
        }
    }
    let items = match node.get(&form.args).map(|args| &args.kind) {
        Some(Kind::List { all, .. }) => all.as_slice(),
        _ => &[],
    };
    let args = stdio.args.iter_mut().flat_map(|(_, _, all)| all);
    args.zip(items).filter(|(_, item)| !alone(item)).for_each(|(arg, _)| cut(arg));
}

/// Why command and arguments cannot be edited, although they can be read.
fn fixed(text: &str, layout: Layout, key: &Node, command: &Node, args: Option<&Node>) -> Option<&'static str> {
    let between = text.get(key.span.end..command.span.start).unwrap_or_default();
    if command.marked || args.is_some_and(|a| a.marked || matches!(a.kind, Kind::Alias(_))) {
        return Some("its command or its args carry an anchor, an alias or a tag (&, *, !)");
    }
    if !command.scalar().is_some_and(|s| s.line) || between.trim() != ":" || between.contains('\n') {
        return Some("its command does not stand on one line with its key");
    }
    if layout == Layout::Block && !before(text, key.span.start).bytes().all(|b| matches!(b, b' ' | b'-')) {
        return Some("its command does not begin a line");
    }
    let items = match args.map(|a| &a.kind) {
        Some(Kind::List { all, flow: false }) => Some(all),
        _ => None,
    };
    // Between brackets these end a plain word.
    if items.is_none() && command.scalar().is_some_and(|s| s.plain && s.value.contains(['[', ']', '{', '}', ','])) {
        return Some("its command has a bracket or a comma in it: put it in quotes");
    }
    let first = items.and_then(|all| all.first());
    let dash = |item: &Node| {
        let line = before(text, item.span.start).trim_end_matches(' ');
        line.strip_suffix('-').is_some_and(|indent| indent.bytes().all(|b| b == b' '))
    };
    if first.is_some_and(|first| first.marked || !dash(first)) {
        return Some("its args do not begin on a line of their own");
    }
    None
}

/// What stands before a place, on its line.
fn before(text: &str, at: usize) -> &str {
    text.get(..at).unwrap_or_default().rsplit('\n').next().unwrap_or_default()
}

/// What a plain word means. Clients differ on a few of these (YAML 1.1 and 1.2, dates); all that one of them may not
/// take for a string is none.
fn resolved(word: &str) -> Value {
    match word {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let unsigned = word.trim_start_matches(['+', '-']);
    let number = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && (unsigned.parse::<f64>().is_ok()
            || unsigned.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'_' | b':' | b'-'))
            || ["0x", "0o", "0b"].iter().any(|base| unsigned.starts_with(base))
            || matches!(unsigned.to_ascii_lowercase().as_str(), ".inf" | ".nan"));
    if number { Value::Number(word.to_owned()) } else { Value::Text(word.to_owned()) }
}

fn parse(text: &str) -> Result<Tree, SyntaxError> {
    let error = |at: usize, what: &str| {
        let (line, column) = position(text, at);
        SyntaxError { line, column, what: what.to_owned() }
    };
    let options = granit_parser::options! { emit_comments: false };
    let mut tree = Tree { root: None, anchors: HashMap::new() };
    let mut open: Vec<Open> = Vec::new();
    let (mut nodes, mut documents) = (0, 0);
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, place) = event.map_err(|e| {
            let what = e.info().lines().next().unwrap_or("not YAML").to_owned();
            SyntaxError { line: e.marker().line(), column: e.marker().col() + 1, what }
        })?;
        // A parser over a string knows them; 0 would make an edit that the proof refuses.
        let bytes = |marker: granit_parser::Marker| marker.byte_offset().unwrap_or_default();
        let span = bytes(place.start)..bytes(place.end);
        nodes += 1;
        if nodes > MAX_NODES {
            return Err(error(span.start, "it is larger than any configuration"));
        }
        let begin = |kind, anchor, marked| Open {
            node: Node { span: span.clone(), marked, kind },
            anchor,
            key: None,
            keys: HashSet::new(),
        };
        let done = match event {
            Event::DocumentStart(..) => {
                documents += 1;
                if documents > 1 {
                    return Err(error(span.start, "there is more than one document in it"));
                }
                continue;
            }
            Event::Scalar(value, style, anchor, tag) => {
                let (span, line) = token(text, span, style, &value);
                let plain = style == ScalarStyle::Plain;
                let kind = Kind::Scalar(Scalar { value: value.into_owned(), plain, line });
                Node { span, marked: anchor != 0 || tag.is_some(), kind }
            }
            Event::Alias(anchor) => Node { span, marked: false, kind: Kind::Alias(anchor) },
            Event::SequenceStart(style, anchor, tag) => {
                let kind = Kind::List { all: Vec::new(), flow: style == StructureStyle::Flow };
                open.push(begin(kind, anchor, anchor != 0 || tag.is_some()));
                continue;
            }
            Event::MappingStart(style, anchor, tag) => {
                let kind = Kind::Map { all: Vec::new(), flow: style == StructureStyle::Flow };
                open.push(begin(kind, anchor, anchor != 0 || tag.is_some()));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(ended) = open.pop() else { continue };
                tree.remember(&ended);
                ended.close(span.end)
            }
            _ => continue,
        };
        match open.last_mut() {
            None => tree.root = Some(done),
            Some(parent) => {
                if let Some(key) = parent.add(done) {
                    return Err(error(key.start, "this key stands twice"));
                }
            }
        }
    }
    Ok(tree)
}

/// The span of a scalar, without the blanks behind it, and whether it is one line.
fn token(text: &str, span: Span, style: ScalarStyle, value: &str) -> (Span, bool) {
    let all = text.get(span.clone()).unwrap_or_default();
    let own = all.trim_end();
    let quoted = |sign: char| own.len() >= 2 && own.starts_with(sign) && own.ends_with(sign);
    let whole = match style {
        ScalarStyle::Plain => own == value,
        ScalarStyle::SingleQuoted => quoted('\''),
        ScalarStyle::DoubleQuoted => quoted('"'),
        ScalarStyle::Literal | ScalarStyle::Folded => false,
    };
    (span.start..span.start + own.len(), whole && !own.contains(['\n', '\r']))
}

impl Open {
    /// Takes a child in. The span of a key that is there already comes back.
    fn add(&mut self, child: Node) -> Option<Span> {
        match &mut self.node.kind {
            Kind::List { all, .. } => all.push(child),
            Kind::Map { all, .. } => match self.key.take() {
                Some(key) => all.push((key, child)),
                None => {
                    if child.scalar().is_some_and(|s| !self.keys.insert(s.value.clone())) {
                        return Some(child.span);
                    }
                    self.key = Some(child);
                }
            },
            Kind::Scalar(_) | Kind::Alias(_) => {}
        }
        None
    }

    /// The node; one without brackets ends where its last child ends.
    fn close(self, end: usize) -> Node {
        let (first, last, flow) = match &self.node.kind {
            Kind::List { all, flow } => (all.first(), all.last(), *flow),
            Kind::Map { all, flow } => (all.first().map(|(k, _)| k), all.last().map(|(_, v)| v), *flow),
            Kind::Scalar(_) | Kind::Alias(_) => (None, None, true),
        };
        let start = self.node.span.start;
        let span = match (first, last) {
            (Some(first), Some(last)) if !flow => start.min(first.span.start)..last.span.end.max(start),
            _ => start..end.max(start),
        };
        Node { span, ..self.node }
    }
}

impl Tree {
    /// Keeps what an anchored map holds.
    fn remember(&mut self, ended: &Open) {
        if let (Kind::Map { all, .. }, true) = (&ended.node.kind, ended.anchor != 0) {
            let simple: Option<Vec<_>> = all
                .iter()
                .map(|(key, value)| Some((key.string()?, value.span.clone(), value.scalar()?.value.clone())))
                .collect();
            simple.and_then(|simple| self.anchors.insert(ended.anchor, simple));
        }
    }
}

//! TOML, as Codex reads it. A key or table that stands twice is an error to its parser, and so it is here.

use toml_edit::{Document, Item, Key, TableLike, Value};

use super::{
    Layout, MAX_SERVERS, Server, Shape, Span, Str, SyntaxError,
    entry::{self, Field},
    position, too_many,
};
use crate::form::Form;

pub(super) fn servers(text: &str, path: &[String], form: &Form) -> Result<Vec<Server>, SyntaxError> {
    let document = parse(text)?;
    let mut place = document.as_item();
    for key in path {
        let Some(inside) = place.as_table_like().and_then(|t| t.get(key)) else { return Ok(Vec::new()) };
        place = inside;
    }
    let server = |name, shape| Server { project: None, name, shape };
    let mut all: Vec<Server> = match (place.as_table_like(), &form.name) {
        (Some(table), _) => {
            members(table).take(MAX_SERVERS + 1).map(|(key, item)| server(string(key), of(text, item, form))).collect()
        }
        (None, Some(key)) => listed(place)
            .into_iter()
            .enumerate()
            .map(|(at, (table, layout))| server(name_of(table, key, at), shape(text, table, layout, form)))
            .collect(),
        (None, None) => Vec::new(),
    };
    if all.len() > MAX_SERVERS {
        return Err(too_many(text, place.span().map_or(0, |s| s.start)));
    }
    all.sort_by_key(|server| server.name.span.start);
    Ok(all)
}

/// The tables of an array of tables, or of an array with braces in it.
fn listed(place: &Item) -> Vec<(&dyn TableLike, Layout)> {
    let braces = place.as_array().into_iter().flat_map(|all| all.iter().filter_map(Value::as_inline_table));
    let tables = place.as_array_of_tables().into_iter().flat_map(|all| all.iter());
    let mut all: Vec<(&dyn TableLike, Layout)> = braces.map(|t| (t as &dyn TableLike, Layout::Inline)).collect();
    all.extend(tables.map(|t| (t as &dyn TableLike, Layout::Lines)));
    all.truncate(MAX_SERVERS + 1);
    all
}

/// The name of a server in a list.
fn name_of(table: &dyn TableLike, key: &str, at: usize) -> Str {
    match table.get(key).and_then(Item::as_value) {
        Some(Value::String(s)) => Str { span: span(s.span()), value: s.value().clone() },
        _ => Str { span: Span::default(), value: (at + 1).to_string() },
    }
}

pub(super) fn strings(text: &str, mut each: impl FnMut(Option<&str>, Span, &str)) -> Result<(), SyntaxError> {
    fn table(all: &dyn TableLike, each: &mut impl FnMut(Option<&str>, Span, &str)) {
        members(all).for_each(|(key, item)| walk(item, key.get(), each));
    }
    fn walk(item: &Item, key: &str, each: &mut impl FnMut(Option<&str>, Span, &str)) {
        match item {
            Item::Value(v) => value(v, key, each),
            Item::Table(t) => table(t, each),
            Item::ArrayOfTables(all) => all.iter().for_each(|t| table(t, each)),
            Item::None => {}
        }
    }
    fn value(v: &Value, key: &str, each: &mut impl FnMut(Option<&str>, Span, &str)) {
        match v {
            Value::String(s) => each(Some(key), span(v.span()), s.value()),
            Value::Array(all) => all.iter().for_each(|v| value(v, key, each)),
            Value::InlineTable(t) => table(t, each),
            Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {}
        }
    }
    table(parse(text)?.as_table(), &mut each);
    Ok(())
}

fn parse(text: &str) -> Result<Document<&str>, SyntaxError> {
    Document::parse(text).map_err(|e| {
        let (line, column) = position(text, e.span().map_or(0, |s| s.start));
        // The parser's words can go over several lines, the first of which says what is wrong.
        let what = e.message().lines().next().unwrap_or("not TOML").to_owned();
        SyntaxError { line, column, what }
    })
}

/// Keys and values; a key of a table that was read has a span.
fn members(table: &dyn TableLike) -> impl Iterator<Item = (&Key, &Item)> {
    table.iter().filter_map(|(name, item)| Some((table.key(name)?, item)))
}

fn span(span: Option<Span>) -> Span {
    span.unwrap_or_default()
}

fn string(key: &Key) -> Str {
    Str { span: span(key.span()), value: key.get().to_owned() }
}

fn of(text: &str, item: &Item, form: &Form) -> Shape {
    let Some(table) = item.as_table_like() else { return Shape::Odd("it is not a table".into()) };
    shape(text, table, if item.is_value() { Layout::Inline } else { Layout::Lines }, form)
}

fn shape(text: &str, table: &dyn TableLike, layout: Layout, form: &Form) -> Shape {
    let mut fields = fields(table);
    if layout == Layout::Inline && table.is_dotted() {
        // Between braces the path in front of a key belongs to the key: other tables' keys may stand around it.
        for field in &mut fields {
            field.key.span.start = path_start(text, field.key.span.start);
        }
    }
    entry::shape(layout, &fields, form)
}

/// Where the dotted path in front of a key between braces begins.
fn path_start(text: &str, key: usize) -> usize {
    let before = text.get(..key).unwrap_or_default();
    let path = before.rfind([',', '{']).map_or("", |at| before[at + 1..].trim_start());
    // After a comment it is not looked for; an edit that needs it is then refused.
    if path.contains(['#', '\n']) { key } else { key - path.len() }
}

fn fields(table: &dyn TableLike) -> Vec<Field> {
    let field = |(key, item): (&Key, &Item)| {
        let key = string(key);
        Field {
            span: item.as_value().and_then(Value::span).unwrap_or_else(|| key.span.clone()),
            value: of_item(item),
            key,
        }
    };
    let mut all: Vec<Field> = members(table).map(field).collect();
    all.sort_by_key(|field| field.key.span.start);
    all
}

fn of_item(item: &Item) -> entry::Value {
    match item {
        Item::Value(value) => of_value(value),
        Item::Table(table) => entry::Value::Map(fields(table)),
        Item::ArrayOfTables(_) | Item::None => entry::Value::Other,
    }
}

fn of_value(value: &Value) -> entry::Value {
    match value {
        Value::String(s) => entry::Value::Text(s.value().clone()),
        Value::Integer(n) => entry::Value::Number(n.value().to_string()),
        Value::Float(n) => entry::Value::Number(n.value().to_string()),
        Value::Boolean(b) => entry::Value::Bool(*b.value()),
        Value::Array(all) => entry::Value::List(all.iter().map(|v| (span(v.span()), of_value(v))).collect()),
        Value::InlineTable(table) => entry::Value::Map(fields(table)),
        Value::Datetime(_) => entry::Value::Other,
    }
}

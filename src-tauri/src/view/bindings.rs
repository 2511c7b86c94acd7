//! The TypeScript types in `ui/src/bindings.ts` are those of the views. `UPDATE_BINDINGS=1 cargo test -p firedoor-desktop
//! bindings` writes them.

use std::{collections::BTreeMap, path::Path};

use ts_rs::{TS, TypeVisitor};

use super::*;

const FILE: &str = "../ui/src/bindings.ts";

#[derive(Default)]
struct Declared(BTreeMap<String, String>);

impl Declared {
    fn of<T: TS + 'static + ?Sized>(&mut self) {
        // Types of the language have no path of their own.
        if T::output_path().is_none() || self.0.insert(T::ident(), format!("export {}", T::decl())).is_some() {
            return;
        }
        T::visit_dependencies(self);
    }
}

impl TypeVisitor for Declared {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        self.of::<T>();
    }
}

#[test]
fn bindings_are_those_of_the_views() {
    let mut declared = Declared::default();
    declared.of::<AskedView>();
    declared.of::<WholeArgumentsView>();
    declared.of::<ChoiceView>();
    declared.of::<AnswerView>();
    declared.of::<crate::windows::View>();
    declared.of::<OverviewView>();
    declared.of::<FoundClientView>();
    declared.of::<PlanView>();
    declared.of::<ProgressView>();
    declared.of::<ActivityView>();
    declared.of::<ServerView>();
    declared.of::<VisitView>();
    declared.of::<RowsQuery>();
    declared.of::<CountsView>();
    declared.of::<RulesView>();
    declared.of::<crate::settings::NewRule>();
    declared.of::<SettingsView>();
    declared.of::<SecretsView>();
    declared.of::<VerifiedView>();
    declared.of::<ExportView>();
    declared.of::<AboutView>();
    let head = "// Written from src-tauri/src/view by its test `bindings`. Do not edit.\n";
    let text = declared.0.values().fold(head.to_owned(), |text, decl| format!("{text}\n{decl}\n"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    if std::env::var_os("UPDATE_BINDINGS").is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == text,
        "{FILE} is not what the views say: run UPDATE_BINDINGS=1 cargo test -p firedoor-desktop bindings"
    );
}

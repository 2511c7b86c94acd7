//! What a client would put in the place of a variable. Used to start a server for verification, never for editing.

use std::path::Path;

use crate::{
    catalog::Interpolation,
    env::Env,
    plugins::{Plugin, PluginRules},
};

/// A value that only the client, or its user, knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it uses ${{{0}}}, which only the client can fill in")]
pub(crate) struct Unknown(pub String);

/// The variables of one entry.
pub(crate) struct Variables<'e> {
    rules: Interpolation,
    env: &'e Env<'e>,
    project: Option<&'e str>,
    plugin: Option<(&'e PluginRules, &'e Plugin)>,
}

impl<'e> Variables<'e> {
    pub fn new(rules: Interpolation, env: &'e Env<'e>, project: Option<&'e str>) -> Self {
        Self { rules, env, project, plugin: None }
    }

    /// The variables of one that a plugin brings.
    pub fn in_plugin(self, rules: &'e PluginRules, plugin: Option<&'e Plugin>) -> Self {
        Self { plugin: plugin.map(|plugin| (rules, plugin)), ..self }
    }

    /// Fills in every reference. What is filled in is not looked at again.
    pub fn expand(&self, text: &str) -> Result<String, Unknown> {
        if self.rules == Interpolation::Unknown && self.rules.touches(text).is_some() {
            // Without rules there is no telling what is a name and what a secret.
            return Err(Unknown("…".to_owned()));
        }
        let mut out = String::new();
        for piece in self.rules.pieces(text) {
            match piece {
                Piece::Literal(literal) => out.push_str(literal),
                Piece::Reference(inside) => {
                    let value = self.of_plugin(inside).or_else(|| match self.rules {
                        Interpolation::None | Interpolation::Unknown => None,
                        Interpolation::ShellDefault | Interpolation::Shell | Interpolation::ShellNames => {
                            self.shell(inside)
                        }
                        Interpolation::Editor => self.editor(inside),
                        // What a file holds is not read: it is there to keep a secret.
                        Interpolation::Tags => inside.strip_prefix("env:").and_then(|name| self.var(name)),
                    });
                    out.push_str(&value.ok_or_else(|| Unknown(inside.chars().take(80).collect()))?);
                }
            }
        }
        Ok(out)
    }

    fn of_plugin(&self, inside: &str) -> Option<String> {
        let (rules, plugin) = self.plugin?;
        let among = |names: &[String]| names.iter().any(|name| name == inside);
        if among(&rules.separators) {
            return Some(std::path::MAIN_SEPARATOR.to_string());
        }
        among(&rules.variables).then(|| plugin.dir.to_str().map(str::to_owned)).flatten()
    }

    fn shell(&self, inside: &str) -> Option<String> {
        match inside.split_once(":-") {
            Some((name, default)) => Some(self.var(name).unwrap_or_else(|| default.to_owned())),
            None => self.var(inside),
        }
    }

    fn editor(&self, inside: &str) -> Option<String> {
        match inside {
            "userHome" => self.env.paths.home.to_str().map(str::to_owned),
            "workspaceFolder" => self.project.map(str::to_owned),
            "workspaceFolderBasename" => {
                self.project.and_then(|p| Path::new(p).file_name()).and_then(|n| n.to_str()).map(str::to_owned)
            }
            "pathSeparator" | "/" => Some(std::path::MAIN_SEPARATOR.to_string()),
            // Unset variables are empty in editors, but a server started so proves nothing.
            _ => inside.strip_prefix("env:").and_then(|name| self.var(name)),
        }
    }

    fn var(&self, name: &str) -> Option<String> {
        self.env.var(name)?.into_string().ok()
    }
}

/// The text without `${{ secrets.NAME }}`, as Continue has it.
fn without_doubled(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${{")
        && let Some((_, behind)) = behind.split_once("}}")
    {
        out.push_str(before);
        rest = behind;
    }
    out + rest
}

/// A part of a text.
enum Piece<'t> {
    Literal(&'t str),
    /// What stands inside of `${…}`, or behind `$`.
    Reference(&'t str),
}

impl Interpolation {
    /// What a reference begins with.
    pub fn sign(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::ShellDefault | Self::Editor => Some("${"),
            Self::Shell | Self::ShellNames | Self::Unknown => Some("$"),
            Self::Tags => Some("{"),
        }
    }

    /// The sign in a text that the client may take for the start of a reference.
    pub fn touches(self, text: &str) -> Option<&'static str> {
        let also = (self == Self::Unknown).then_some("{");
        self.sign().into_iter().chain(also).find(|sign| text.contains(sign))
    }

    /// Whether the client would fill something in.
    pub fn refers(self, text: &str) -> bool {
        match self {
            Self::Unknown => self.touches(text).is_some(),
            known => known.pieces(text).iter().any(|piece| matches!(piece, Piece::Reference(_))),
        }
    }

    /// The text with every reference taken out, but for defaults.
    pub fn literal(self, text: &str) -> String {
        match self {
            // Whichever of the forms it is, what stands inside is a name.
            Self::Unknown => Self::Tags.without(&Self::Shell.without(&without_doubled(text))),
            known => known.without(text),
        }
    }

    fn without(self, text: &str) -> String {
        let part = |piece| match piece {
            Piece::Literal(literal) => literal,
            Piece::Reference(inside) => inside.split_once(":-").map_or("", |(_, default)| default),
        };
        self.pieces(text).into_iter().map(part).collect()
    }

    fn pieces(self, text: &str) -> Vec<Piece<'_>> {
        let Some(sign) = self.sign() else { return vec![Piece::Literal(text)] };
        let mut all = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(sign) {
            let braces = if sign == "$" { after.strip_prefix('{') } else { Some(after) };
            let reference = match braces {
                // Other braces, such as those of JSON in an argument, stand for themselves.
                Some(after) if self == Self::Tags => {
                    after.split_once('}').filter(|_| after.starts_with("env:") || after.starts_with("file:"))
                }
                Some(after) => after.split_once('}'),
                None => {
                    let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
                    after.split_at_checked(end).filter(|(name, _)| !name.is_empty())
                }
            };
            // The sign alone, or braces that are not closed, stand for themselves.
            let (literal, behind) = match reference {
                Some((_, behind)) => (before, behind),
                None => (&rest[..before.len() + sign.len()], after),
            };
            all.push(Piece::Literal(literal));
            all.extend(reference.map(|(inside, _)| Piece::Reference(inside)));
            rest = behind;
        }
        all.push(Piece::Literal(rest));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firedoor_model::paths::Paths;

    fn check(rules: Interpolation, project: Option<&str>, text: &str) -> Result<String, String> {
        let vars = [("HOME", "/h"), ("A", "one"), ("B", "${A}")];
        let look = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| v.into());
        let env = Env::new(Paths::from_env(look).unwrap(), "/", look);
        Variables::new(rules, &env, project).expand(text).map_err(|e| e.0)
    }

    #[test]
    fn shell_rules() {
        for (text, want) in [
            ("x${A}y", Ok("xoney")),
            ("${A:-d}", Ok("one")),
            ("${N:-d}", Ok("d")),
            ("${N:-}", Ok("")),
            ("${N}", Err("N")),
            ("${B}", Ok("${A}")),
            ("${open", Ok("${open")),
            ("$A", Ok("$A")),
            ("${env:A}", Err("env:A")),
        ] {
            let want = want.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(check(Interpolation::ShellDefault, None, text), want, "{text}");
        }
    }

    #[test]
    fn a_plugins_own_directory() {
        let env = Env::new(Paths::from_env(|_| Some("/h".into())).unwrap(), "/", |_| None);
        let names = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect();
        let rules = PluginRules {
            variables: names(&["CLAUDE_PLUGIN_ROOT"]),
            separators: names(&["/"]),
            ..PluginRules::default()
        };
        let plugin = Plugin { dir: "/p".into(), name: "p".into(), own: false, named: Vec::new() };
        let variables = Variables::new(Interpolation::ShellDefault, &env, None);
        let text = "${CLAUDE_PLUGIN_ROOT}${/}srv";
        assert_eq!(variables.expand(text).map_err(|e| e.0), Err("CLAUDE_PLUGIN_ROOT".into()));
        let variables = variables.in_plugin(&rules, Some(&plugin));
        assert_eq!(variables.expand(text).map_err(|e| e.0), Ok("/p/srv".into()));
        assert_eq!(variables.expand("${CLAUDE_PLUGIN_DATA}").map_err(|e| e.0), Err("CLAUDE_PLUGIN_DATA".into()));
    }

    #[test]
    fn bare_and_no_rules() {
        for (rules, text, want) in [
            (Interpolation::Shell, "x$A-${A}${N:-d}", Ok("xone-oned")),
            (Interpolation::Shell, "$AB", Err("AB")),
            (Interpolation::Shell, "5 $ and $", Ok("5 $ and $")),
            (Interpolation::Shell, "${open", Ok("${open")),
            (Interpolation::None, "$A${A}", Ok("$A${A}")),
            (Interpolation::Unknown, "plain", Ok("plain")),
            (Interpolation::Unknown, "secret$A", Err("…")),
            (Interpolation::Unknown, "{env:A}", Err("…")),
            (Interpolation::Tags, "{env:A}-{\"a\":1}", Ok("one-{\"a\":1}")),
            (Interpolation::Tags, "{file:/k}", Err("file:/k")),
            (Interpolation::Tags, "{env:N}", Err("env:N")),
            (Interpolation::Tags, "$A {env:", Ok("$A {env:")),
        ] {
            let want = want.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(check(rules, None, text), want, "{text}");
        }
    }

    #[test]
    fn what_is_left_without_references() {
        for (rules, text, want) in [
            (Interpolation::Unknown, "a$A-${env:B}{env:C}{file:/d}${E:-e}{f}", "a-e{f}"),
            (Interpolation::Unknown, "a${{ secrets.K }}b${{x}}", "ab"),
            (Interpolation::Unknown, "a${{open", "a${{open"),
            (Interpolation::Tags, "{env:C}$A{\"a\":1}", "$A{\"a\":1}"),
            (Interpolation::Shell, "$A{env:C}", "{env:C}"),
        ] {
            assert_eq!(rules.literal(text), want, "{text}");
        }
    }

    #[test]
    fn editor_rules() {
        for (project, text, want) in [
            (None, "${env:A}-${userHome}", Ok("one-/h")),
            (Some("/p/q"), "${workspaceFolder}${/}${workspaceFolderBasename}", Ok("/p/q/q")),
            (None, "${workspaceFolder}", Err("workspaceFolder")),
            (None, "${input:key}", Err("input:key")),
            (None, "${A}", Err("A")),
        ] {
            let want = want.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(check(Interpolation::Editor, project, text), want, "{text}");
        }
    }
}

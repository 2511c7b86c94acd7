//! What a client would put in the place of a variable. Used to start a server for verification, never for editing.

use std::path::Path;

use crate::{catalog::Interpolation, env::Env};

/// A value that only the client, or its user, knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it uses ${{{0}}}, which only the client can fill in")]
pub(crate) struct Unknown(pub String);

/// The variables of one entry.
pub(crate) struct Variables<'e> {
    rules: Interpolation,
    env: &'e Env<'e>,
    project: Option<&'e str>,
}

impl<'e> Variables<'e> {
    pub fn new(rules: Interpolation, env: &'e Env<'e>, project: Option<&'e str>) -> Self {
        Self { rules, env, project }
    }

    /// Fills in every `${…}`. What is filled in is not looked at again.
    pub fn expand(&self, text: &str) -> Result<String, Unknown> {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            out.push_str(before);
            let Some((inside, tail)) = after.split_once('}') else {
                out.push_str("${");
                rest = after;
                break;
            };
            let value = match self.rules {
                Interpolation::ShellDefault => self.shell(inside),
                Interpolation::Editor => self.editor(inside),
            };
            out.push_str(&value.ok_or_else(|| Unknown(inside.chars().take(80).collect()))?);
            rest = tail;
        }
        out.push_str(rest);
        Ok(out)
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

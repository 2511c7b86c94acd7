//! Plans for `uv run`: a project's own environment, as it is.

use std::{ffi::OsString, path::Path};

use firedoor_model::{launch::Access, paths::canonicalize};

use super::{Plan, Planner, real};
use crate::{command::UvRun, error::PlanError, identity::What, runtime, sys};

impl Planner<'_> {
    /// `uv run` in a project that is synchronised.
    pub(super) fn uv_run(mut self, tool: &str, run: &UvRun) -> Result<Plan, PlanError> {
        let refuse = |what: String, remedy| Err(PlanError::Command { tool: "uv run", what, remedy });
        let start = run.directory.as_ref().map_or_else(|| self.request.cwd.clone(), |d| self.request.cwd.join(d));
        // Through `..` or a link it may lie in another project than its name says.
        let start = canonicalize(&start).unwrap_or(start);
        let home = canonicalize(self.at.home).unwrap_or_else(|_| self.at.home.to_owned());
        let found = start
            .ancestors()
            .take_while(|d| !home.starts_with(d) && !self.at.home.starts_with(d))
            .find(|d| d.join("pyproject.toml").is_file())
            .map(Path::to_owned);
        let Some(project) = found else {
            return refuse(
                format!("{} is in no project (no pyproject.toml)", start.display()),
                "Give --directory the project's directory, or name the project's program in .venv as the command",
            );
        };
        let venv = project.join(".venv");
        let python = sys::in_venv(&venv, Path::new("python"));
        if !python.exists() {
            return refuse(
                format!("{} has no .venv with the packages, and Firedoor runs servers offline", project.display()),
                "Run `uv sync` in that directory once",
            );
        }
        self.uv_itself(tool)?;
        self.grants.derived([project.clone()], Access::Read);
        let files = crate::program::links(&python);
        self.installed_at(&files);
        let first = run.rest.first().map(OsString::as_os_str).unwrap_or_default();
        let name = Path::new(first).file_name().unwrap_or_default().to_string_lossy();
        let script = match runtime::target(&sys::program_name(&name), run.rest.get(1..).unwrap_or_default(), &start) {
            Some(runtime::Target::Script(path)) => Some(path),
            Some(runtime::Target::Module(m)) => runtime::module_file(&m, &start),
            None if Path::new(first).extension().is_some_and(|e| e == "py") => Some(start.join(first)),
            None => Some(sys::in_venv(&venv, Path::new(first))),
        };
        let what = match script.filter(|s| s.is_file()) {
            Some(script) => {
                self.grants.derived(runtime::project(&script, self.at.home), Access::Read);
                What::Script { path: real(&script)?, sha256: self.digest(&script)?, interpreter: real(&python)? }
            }
            None => self.program_identity()?,
        };
        for (name, value) in
            [("UV_OFFLINE", "1"), ("UV_NO_SYNC", "1"), ("UV_FROZEN", "1"), ("UV_PYTHON_DOWNLOADS", "never")]
        {
            self.set(name, value);
        }
        let args = self.request.args.clone();
        self.run(what, &args)
    }
}

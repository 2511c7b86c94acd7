//! Plans for executables, and for interpreters with a script.

use std::path::Path;

use firedoor_model::launch::Access;

use super::{Plan, Planner, container, real};
use crate::{error::PlanError, identity::What, profile::Kind, program::links, runtime};

impl Planner<'_> {
    /// An executable, or an interpreter with a script.
    pub(super) fn plain(mut self, name: &str) -> Result<Plan, PlanError> {
        let target = match runtime::target(name, &self.request.args, &self.request.cwd) {
            Some(runtime::Target::Script(path)) => Some(path),
            Some(runtime::Target::Module(module)) => runtime::module_file(&module, &self.request.cwd),
            None => None,
        };
        let what = match target.filter(|t| t.is_file()) {
            Some(script) => {
                self.grants.derived(runtime::project(&script, self.at.home), Access::Read);
                if runtime::kind(name) == Some(Kind::Bun) {
                    // Before it looks for packages it lists the directory that it is started in, and those with packages.
                    let hops = links(&script);
                    let above = hops.iter().flat_map(|hop| hop.ancestors());
                    let above = above.filter(|d| d.join("node_modules").is_dir()).map(Path::to_owned);
                    self.grants.derived(above.chain([self.request.cwd.clone()]), Access::List);
                }
                let interpreter = self.program.interpreter.clone().unwrap_or_else(|| self.program.real.clone());
                What::Script { path: real(&script)?, sha256: self.digest(&script)?, interpreter }
            }
            None => self.program_identity()?,
        };
        if runtime::kind(name) == Some(Kind::Docker) {
            container::notes(name, &self.request.args).into_iter().for_each(|note| self.grants.note(note));
        }
        if self.program.interpreter.is_some() {
            let real = self.program.real.clone();
            self.grants.derived(runtime::project(&real, self.at.home), Access::Read);
        }
        let args = self.request.args.clone();
        self.run(what, &args)
    }
}

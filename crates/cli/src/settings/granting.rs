//! What a grant will not open, said when it is given. A server's start says it again: by then links may lead elsewhere.

use std::path::{Path, PathBuf};

use firedoor_launch::{Remedy, closed};
use firedoor_model::{
    Untrusted,
    launch::{Access, Grant},
    observation::{Basis, Use},
    paths::{Paths, canonicalize},
};

use crate::{engine::paths, failure::Failure};

/// Most places that are named.
const NAMED: usize = 20;

/// Refuses what no start would grant. Gives what of the rest stays closed.
pub fn looked_at(grants: &[Grant], sockets: &[PathBuf]) -> Result<Vec<String>, Failure> {
    let paths = paths()?;
    for path in grants.iter().map(|grant| &grant.path).chain(sockets) {
        if let Some(why) = never(path, &paths) {
            return Err(Failure::refused(format!("nothing was granted: {} is never granted: {why}", path.display())));
        }
    }
    Ok(grants.iter().filter_map(|grant| left_out(grant, &paths)).collect())
}

fn never(path: &Path, paths: &Paths) -> Option<&'static str> {
    let real = |path: &Path| canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let target = real(path);
    if paths.own().into_iter().any(|own| target.starts_with(real(own))) {
        Some("it belongs to Firedoor")
    } else if target.parent().is_none() {
        Some("it holds too much; grant a directory in it instead")
    } else {
        None
    }
}

/// The protected places directly in a home that is granted as a whole, or with what is around it.
fn left_out(grant: &Grant, paths: &Paths) -> Option<String> {
    let (target, home) = (canonicalize(&grant.path).ok()?, canonicalize(&paths.home).ok()?);
    if !home.starts_with(&target) {
        return None;
    }
    let how = if grant.access >= Access::Edit { Use::Write } else { Use::Read };
    let stays = |path: &Path| {
        let found = closed(&Untrusted::new(path.to_str()?), how, &Basis::default(), paths)?;
        let own = paths.own().into_iter().any(|own| canonicalize(own).is_ok_and(|own| own == path));
        (found.remedy == Remedy::Protected || own).then_some(found.shown)
    };
    let mut children: Vec<PathBuf> = home.read_dir().ok()?.flatten().map(|child| child.path()).collect();
    children.sort();
    let mut named: Vec<String> = children.iter().filter_map(|path| stays(path)).collect();
    let more = named.len().saturating_sub(NAMED);
    named.truncate(NAMED);
    if more > 0 {
        named.push(format!("{more} more"));
    }
    let named = if named.is_empty() { String::new() } else { format!(": {}", named.join(", ")) };
    let how = if how == Use::Write { " closed, or to be read only" } else { " closed" };
    Some(format!(
        "{} is not granted whole: what holds secrets, starts programs or is Firedoor's stays{how}{named}. Files directly in it that appear \
         later are not granted either",
        grant.path.display()
    ))
}

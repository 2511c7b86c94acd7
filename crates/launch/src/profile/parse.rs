//! One profile's text.

use std::path::{Component, Path};

use super::Profile;

/// Reads one profile. The error is a line, when it is known, and what is wrong and what to do.
pub(crate) fn parse(name: &str, text: &str) -> Result<Profile, (Option<usize>, String)> {
    let mut profile: Profile = toml::from_str(text).map_err(|e| {
        let line = e.span().map(|s| text.get(..s.start).unwrap_or_default().matches('\n').count() + 1);
        (line, e.message().to_owned())
    })?;
    name.clone_into(&mut profile.name);
    let paths = [&profile.read, &profile.write, &profile.list, &profile.state, &profile.unix];
    for path in paths.into_iter().flatten() {
        let line = text.lines().position(|l| l.contains(path.as_str())).map(|n| n + 1);
        let in_home = path.strip_prefix("~/").is_some_and(|rest| !rest.is_empty());
        if !in_home && !path.starts_with('/') && !Path::new(path).is_absolute() {
            return Err((line, format!("{path:?} is no path: write it absolute or beginning with ~/")));
        }
        if Path::new(path).components().any(|c| c.as_os_str() == "..") {
            return Err((line, format!("{path:?} has a part \"..\": write the path without it")));
        }
    }
    let line_of = |word: &str| text.lines().position(|l| l.contains(word)).map(|n| n + 1);
    let endpoints = &profile.endpoints;
    let hosts = endpoints.host.iter().flat_map(|h| [Some(&h.name), h.port.as_ref()]).flatten();
    let own = profile.env.iter().chain(profile.variables.keys()).chain(&profile.path_variables);
    for name in own.chain(&endpoints.variables).chain(hosts) {
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !plain || name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            let why = format!("{name:?} is no name of a variable: use letters, digits and \"_\"");
            return Err((line_of(name), why));
        }
    }
    if let Some((name, _)) = profile.variables.iter().find(|(_, value)| value.contains('\0')) {
        return Err((line_of(name), format!("the value of {name} holds a zero byte: remove it")));
    }
    if let Some(path) = profile.files.keys().find(|p| !inside(Path::new(p))) {
        let why =
            format!("{path:?} is no place in the private home: write a path without / in front and without \"..\"");
        return Err((line_of(path), why));
    }
    if let Some(path) =
        profile.carried.iter().flat_map(|(to, from)| from.iter().chain([to])).find(|p| !inside(Path::new(p)))
    {
        let why = format!("{path:?} leads elsewhere: write a path without / in front and without \"..\"");
        return Err((line_of(path), why));
    }
    if let Some(path) = profile.state.iter().find(|p| !p.starts_with("~/")) {
        return Err((
            line_of(path),
            format!("state {path:?} does not begin with ~/: only paths of your home can be linked"),
        ));
    }
    Ok(profile)
}

/// Whether a path stays where it begins.
fn inside(path: &Path) -> bool {
    path.components().next().is_some() && path.components().all(|part| matches!(part, Component::Normal(_)))
}

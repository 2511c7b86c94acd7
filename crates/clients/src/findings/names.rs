//! What a package's or an image's name says: whether it is pinned, well known, or nearly so.

use firedoor_model::Untrusted;
use serde::Deserialize;

use super::{
    Code, Word,
    runner::{Package, Registry},
};

/// Well-known packages: data, from `profiles/packages.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Packages {
    npm: Vec<String>,
    pypi: Vec<String>,
    images: Vec<String>,
}

/// Longest name that is compared. npm takes 214 characters.
const MAX_NAME: usize = 214;

fn shown(name: &str) -> String {
    Untrusted::new(name).visible(100)
}

/// What there is to say about a package.
pub(super) fn package(known: &Packages, package: &Package, add: &mut impl FnMut(Code, &Word, String)) {
    let at = &package.spec;
    let spec = at.text.as_str();
    // A secret is said elsewhere, and a directory of this machine is nobody's package.
    if at.hidden || spec.is_empty() || spec.starts_with(['.', '/', '~', '$']) {
        return;
    }
    if from_address(package.registry, spec) {
        add(
            Code::NotFromRegistry,
            at,
            "it is fetched from an address (git, archive or another package's place)".into(),
        );
        return;
    }
    let (name, version) = match package.registry {
        Registry::Npm => npm(spec),
        Registry::Pypi => pypi(spec),
    };
    if !exact(package.registry, version) {
        let how = if version.is_empty() { "without a version" } else { "without an exact version" };
        add(Code::Unpinned, at, format!("{} is started {how}: what runs can change with each start", shown(&name)));
    }
    let (list, registry) = match package.registry {
        Registry::Npm => (&known.npm, "npm"),
        Registry::Pypi => (&known.pypi, "PyPI"),
    };
    if list.contains(&name) {
        return;
    }
    match list.iter().find(|k| looks_like(&name, k)) {
        Some(like) => add(Code::LookAlike, at, format!("{} looks like {like}, which is well known", shown(&name))),
        None => {
            add(Code::UnknownSource, at, format!("{} is not among the well-known packages of {registry}", shown(&name)))
        }
    }
}

/// What there is to say about an image.
pub(super) fn image(known: &Packages, image: &str, at: &Word, add: &mut impl FnMut(Code, &Word, String)) {
    if at.hidden || image.starts_with('$') {
        return;
    }
    let (tagged, digest) = image.split_once('@').map_or((image, None), |(t, d)| (t, Some(d)));
    // A colon in front of a slash is that of a port.
    let name = match tagged.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => tagged,
    };
    if !digest.is_some_and(|d| d.starts_with("sha256:")) {
        let text = format!("the image {} is named without a digest: what runs can change", shown(name));
        add(Code::Unpinned, at, text);
    }
    let plain = name.strip_prefix("docker.io/").unwrap_or(name);
    let listed = |k: &String| k.strip_suffix('/').map_or(plain == k, |_| plain.starts_with(k.as_str()));
    if known.images.iter().any(listed) {
        return;
    }
    match known.images.iter().find(|k| !k.ends_with('/') && looks_like(plain, k)) {
        Some(like) => {
            add(Code::LookAlike, at, format!("the image {} looks like {like}, which is well known", shown(name)))
        }
        None => add(Code::UnknownSource, at, format!("the image {} is not among the well-known ones", shown(name))),
    }
}

/// Whether a package comes from anywhere but its registry. Sources: npm `package-spec`, PEP 508.
fn from_address(registry: Registry, spec: &str) -> bool {
    let archive = [".tgz", ".tar.gz", ".tar", ".zip", ".whl"].iter().any(|end| spec.ends_with(end));
    let npm = || {
        // "user/repository" is one of GitHub's; "@scope/name" is a package.
        let shorthand = !spec.starts_with('@') && spec.contains('/');
        let behind = spec.get(1..).and_then(|rest| rest.split_once('@')).map_or("", |(_, version)| version);
        shorthand || behind.contains(':') || behind.contains('/')
    };
    archive
        || spec.contains("://")
        || spec.contains("git+")
        || spec.contains(" @ ")
        || match registry {
            Registry::Npm => npm() || spec.contains(':'),
            Registry::Pypi => spec.contains('/'),
        }
}

/// Name and version; npm's names are lower case, but old ones are not.
fn npm(spec: &str) -> (String, &str) {
    let at = spec.char_indices().skip(1).find(|(_, c)| *c == '@').map_or(spec.len(), |(at, _)| at);
    let (name, version) = spec.split_at(at);
    (name.to_lowercase(), version.trim_start_matches('@'))
}

/// Name in its normal form (PEP 503), and what stands behind it and its extras.
fn pypi(spec: &str) -> (String, &str) {
    let end = spec.find(['[', '@', '=', '<', '>', '~', '!', ' ', ';']).unwrap_or(spec.len());
    let (name, rest) = spec.split_at(end);
    let rest = if rest.starts_with('[') { rest.split_once(']').map_or("", |(_, rest)| rest) } else { rest };
    let name: Vec<String> =
        name.to_lowercase().split(['-', '_', '.']).filter(|p| !p.is_empty()).map(str::to_owned).collect();
    (name.join("-"), rest.trim())
}

/// Whether a version is one version only.
fn exact(registry: Registry, version: &str) -> bool {
    let version = match registry {
        Registry::Npm => version.strip_prefix('v').unwrap_or(version),
        Registry::Pypi => version
            .strip_prefix("===")
            .or_else(|| version.strip_prefix("=="))
            .or_else(|| version.strip_prefix('@'))
            .unwrap_or(""),
    };
    let version = version.trim();
    // To npm "1" and "1.2" are ranges; to PyPI "1.2" is 1.2.0.
    let parts = version.split(['-', '+']).next().unwrap_or_default().split('.');
    let whole = match registry {
        Registry::Npm => parts.clone().count() == 3 && parts.clone().all(|p| p.parse::<u64>().is_ok()),
        Registry::Pypi => version.starts_with(|c: char| c.is_ascii_digit()),
    };
    whole && version.chars().all(|c| c.is_ascii_alphanumeric() || ".-+!_".contains(c))
}

/// Whether a name can be taken for a known one: some letters apart, letters that look alike, or the same name in
/// another scope.
fn looks_like(name: &str, known: &str) -> bool {
    if name.len() > MAX_NAME || name.is_empty() {
        return false;
    }
    if skeleton(name) == skeleton(known) {
        return true;
    }
    // The same name elsewhere, when it is long enough to be nobody else's by chance.
    let base = |n: &str| n.rsplit('/').next().unwrap_or_default().to_owned();
    if known.starts_with("@modelcontextprotocol/") && base(name) == base(known) {
        return true;
    }
    let own = distinctive(known);
    let bound = if own >= 8 { 2 } else { 1 };
    known.len() >= 5 && own >= 3 && distance(name, known) <= bound
}

/// Letters of a name besides those that many servers share.
fn distinctive(name: &str) -> usize {
    let rest = name.replace("@modelcontextprotocol", "").replace("server", "").replace("mcp", "");
    rest.chars().filter(|c| c.is_alphanumeric()).count()
}

/// The name with letters that look alike made the same. Source of the pairs beyond ASCII: Unicode's confusables.txt
/// (UTS #39), those of Cyrillic and Greek that look like small Latin letters.
fn skeleton(name: &str) -> String {
    let name = name.replace("rn", "m").replace("vv", "w");
    let one = |c: char| match c {
        '0' | 'о' | 'ο' => 'o',
        '1' | 'i' | 'і' | 'ι' | '|' => 'l',
        '5' | 'ѕ' => 's',
        'а' | 'α' => 'a',
        'с' => 'c',
        'е' => 'e',
        'р' | 'ρ' => 'p',
        'х' => 'x',
        'у' => 'y',
        'ν' => 'v',
        '_' | '.' => '-',
        other => other,
    };
    name.chars().map(one).collect()
}

/// Letters to insert, remove, replace or swap with their neighbour (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > 2 {
        return usize::MAX;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let replaced = last[j] + usize::from(x != y);
            let mut best = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(usize::MAX)
}

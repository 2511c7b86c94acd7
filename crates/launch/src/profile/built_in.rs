//! The profiles that ship with Firedoor, each read when it is first asked for: a start needs one or two of them.

use std::sync::OnceLock;

use super::{Kind, Profile, Subject, normal, parse::parse};

/// Longest chain of these that extend one another; a test follows them all.
const MAX_CHAIN: usize = 8;

/// The profiles, with all that they extend, in the order of [`BUILT_IN`]. None where one does not parse, which a test
/// rules out.
#[derive(Clone, Debug)]
pub(super) struct BuiltIn([OnceLock<Option<Profile>>; BUILT_IN.len()]);

impl Default for BuiltIn {
    fn default() -> Self {
        Self(std::array::from_fn(|_| OnceLock::new()))
    }
}

impl BuiltIn {
    /// The profile of that name.
    pub fn whole(&self, name: &str) -> Option<&Profile> {
        self.0.get(place(name)?)?.get_or_init(|| read(name, MAX_CHAIN)).as_ref()
    }

    /// All that may be for a server: those in whose text its name stands.
    pub fn about(&self, subject: Subject<'_>) -> impl Iterator<Item = &Profile> {
        let name = match subject {
            Subject::Npm(name) | Subject::Executable(name) => name.to_owned(),
            Subject::Pypi(name) => normal(name),
        };
        self.with(move |text| match subject {
            Subject::Npm(_) | Subject::Executable(_) => text.contains(&name),
            Subject::Pypi(_) => text.contains("pypi") && normal(text).contains(&name),
        })
    }

    /// All that may be for a kind of servers.
    pub fn about_kind(&self, kind: Kind) -> impl Iterator<Item = &Profile> {
        let name = format!("{kind:?}").to_ascii_lowercase();
        self.with(move |text| text.contains("kind") && text.contains(&name))
    }

    fn with(&self, wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = &Profile> {
        BUILT_IN.iter().filter(move |(_, text)| wanted(text)).filter_map(|(name, _)| self.whole(name))
    }
}

fn place(name: &str) -> Option<usize> {
    BUILT_IN.iter().position(|(n, _)| *n == name)
}

fn read(name: &str, depth: usize) -> Option<Profile> {
    let (name, text) = BUILT_IN.get(place(name)?)?;
    let profile = parse(name, text).ok()?;
    match &profile.extends {
        None => Some(profile),
        Some(next) => read(next, depth.checked_sub(1)?).map(|beneath| profile.over(&beneath)),
    }
}

/// Name and text of each.
pub(super) const BUILT_IN: &[(&str, &str)] = &[
    ("arxiv", include_str!("../../../../profiles/sandbox/arxiv.toml")),
    ("atlassian", include_str!("../../../../profiles/sandbox/atlassian.toml")),
    ("aws", include_str!("../../../../profiles/sandbox/aws.toml")),
    ("azure", include_str!("../../../../profiles/sandbox/azure.toml")),
    ("brave-search", include_str!("../../../../profiles/sandbox/brave-search.toml")),
    ("browserbase", include_str!("../../../../profiles/sandbox/browserbase.toml")),
    ("bun", include_str!("../../../../profiles/sandbox/bun.toml")),
    ("chrome-devtools", include_str!("../../../../profiles/sandbox/chrome-devtools.toml")),
    ("context7", include_str!("../../../../profiles/sandbox/context7.toml")),
    ("deno", include_str!("../../../../profiles/sandbox/deno.toml")),
    ("desktop-commander", include_str!("../../../../profiles/sandbox/desktop-commander.toml")),
    ("docker", include_str!("../../../../profiles/sandbox/docker.toml")),
    ("duckduckgo", include_str!("../../../../profiles/sandbox/duckduckgo.toml")),
    ("elasticsearch", include_str!("../../../../profiles/sandbox/elasticsearch.toml")),
    ("everything", include_str!("../../../../profiles/sandbox/everything.toml")),
    ("exa", include_str!("../../../../profiles/sandbox/exa.toml")),
    ("fetch", include_str!("../../../../profiles/sandbox/fetch.toml")),
    ("figma", include_str!("../../../../profiles/sandbox/figma.toml")),
    ("filesystem", include_str!("../../../../profiles/sandbox/filesystem.toml")),
    ("firecrawl", include_str!("../../../../profiles/sandbox/firecrawl.toml")),
    ("git", include_str!("../../../../profiles/sandbox/git.toml")),
    ("github", include_str!("../../../../profiles/sandbox/github.toml")),
    ("gitlab", include_str!("../../../../profiles/sandbox/gitlab.toml")),
    ("google-maps", include_str!("../../../../profiles/sandbox/google-maps.toml")),
    ("kubernetes", include_str!("../../../../profiles/sandbox/kubernetes.toml")),
    ("linear", include_str!("../../../../profiles/sandbox/linear.toml")),
    ("markitdown", include_str!("../../../../profiles/sandbox/markitdown.toml")),
    ("memory", include_str!("../../../../profiles/sandbox/memory.toml")),
    ("mongodb", include_str!("../../../../profiles/sandbox/mongodb.toml")),
    ("mysql", include_str!("../../../../profiles/sandbox/mysql.toml")),
    ("native", include_str!("../../../../profiles/sandbox/native.toml")),
    ("node", include_str!("../../../../profiles/sandbox/node.toml")),
    ("notion", include_str!("../../../../profiles/sandbox/notion.toml")),
    ("npx", include_str!("../../../../profiles/sandbox/npx.toml")),
    ("perplexity", include_str!("../../../../profiles/sandbox/perplexity.toml")),
    ("playwright", include_str!("../../../../profiles/sandbox/playwright.toml")),
    ("postgres", include_str!("../../../../profiles/sandbox/postgres.toml")),
    ("puppeteer", include_str!("../../../../profiles/sandbox/puppeteer.toml")),
    ("python", include_str!("../../../../profiles/sandbox/python.toml")),
    ("redis", include_str!("../../../../profiles/sandbox/redis.toml")),
    ("sentry", include_str!("../../../../profiles/sandbox/sentry.toml")),
    ("sequential-thinking", include_str!("../../../../profiles/sandbox/sequential-thinking.toml")),
    ("slack", include_str!("../../../../profiles/sandbox/slack.toml")),
    ("sqlite", include_str!("../../../../profiles/sandbox/sqlite.toml")),
    ("stripe", include_str!("../../../../profiles/sandbox/stripe.toml")),
    ("supabase", include_str!("../../../../profiles/sandbox/supabase.toml")),
    ("tavily", include_str!("../../../../profiles/sandbox/tavily.toml")),
    ("terraform", include_str!("../../../../profiles/sandbox/terraform.toml")),
    ("time", include_str!("../../../../profiles/sandbox/time.toml")),
    ("uvx", include_str!("../../../../profiles/sandbox/uvx.toml")),
    ("wasm", include_str!("../../../../profiles/sandbox/wasm.toml")),
];

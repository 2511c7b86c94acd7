//! The codes. A number is never given to another meaning.

use firedoor_model::Severity;
use serde::Serialize;

/// A kind of finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Code {
    /// No exact version.
    #[serde(rename = "W001")]
    Unpinned,
    /// A name that can be taken for a well-known one.
    #[serde(rename = "W002")]
    LookAlike,
    /// The same server in several clients.
    #[serde(rename = "W003")]
    Duplicate,
    /// A secret in the text of the configuration.
    #[serde(rename = "W004")]
    Secret,
    /// Started with the rights of root.
    #[serde(rename = "W005")]
    Root,
    /// Not among the well-known packages.
    #[serde(rename = "W006")]
    UnknownSource,
    /// From an address instead of a registry.
    #[serde(rename = "W007")]
    NotFromRegistry,
    /// A container without its boundary.
    #[serde(rename = "W008")]
    OpenContainer,
    /// Started by a shell.
    #[serde(rename = "W009")]
    Shell,
    /// Runs what it downloads, whatever that is.
    #[serde(rename = "W010")]
    DownloadAndRun,
    /// A remote server without encryption.
    #[serde(rename = "W011")]
    PlainHttp,
    /// A secret in a remote server's address or headers.
    #[serde(rename = "W012")]
    RemoteSecret,
    /// Servers that could not be looked at.
    #[serde(rename = "W013")]
    Unread,
}

impl Code {
    /// All of them, by number.
    pub const ALL: [Self; 13] = [
        Self::Unpinned,
        Self::LookAlike,
        Self::Duplicate,
        Self::Secret,
        Self::Root,
        Self::UnknownSource,
        Self::NotFromRegistry,
        Self::OpenContainer,
        Self::Shell,
        Self::DownloadAndRun,
        Self::PlainHttp,
        Self::RemoteSecret,
        Self::Unread,
    ];

    /// Such as `W001`.
    pub fn number(self) -> &'static str {
        self.row().0
    }

    /// A few words on what it is.
    pub fn title(self) -> &'static str {
        self.row().1
    }

    /// How bad it is if it is true.
    pub fn severity(self) -> Severity {
        self.row().2
    }

    /// What to do.
    pub fn remedy(self) -> &'static str {
        self.row().3
    }

    fn row(self) -> (&'static str, &'static str, Severity, &'static str) {
        use Severity::{Critical, High, Low, Medium};
        match self {
            Self::Unpinned => (
                "W001",
                "Version not pinned",
                Medium,
                "Write the exact version behind the name, such as name@1.2.3 or name==1.2.3, or an image's digest.",
            ),
            Self::LookAlike => (
                "W002",
                "Name looks like a well-known one",
                High,
                "Compare the name with the one in the product's documentation, and correct it.",
            ),
            Self::Duplicate => (
                "W003",
                "Same server in several clients",
                Low,
                "Remove it where it is not used, and change all of them together.",
            ),
            Self::Secret => (
                "W004",
                "Secret in clear",
                High,
                "Protect the entry, which moves the secret into the keychain where there is one, and replace the secret itself.",
            ),
            Self::Root => (
                "W005",
                "Runs as root",
                High,
                "Start the server as yourself, and give that user access to what it needs.",
            ),
            Self::UnknownSource => (
                "W006",
                "Package not well known",
                Low,
                "Look at its repository and its maintainers before you go on using it.",
            ),
            Self::NotFromRegistry => (
                "W007",
                "Code from an address",
                Medium,
                "Use the release in the registry, with its exact version, or install it from a copy that you looked at.",
            ),
            Self::OpenContainer => (
                "W008",
                "Container without its boundary",
                High,
                "Remove the option, or give the container only the one path, port or right that it needs.",
            ),
            Self::Shell => {
                ("W009", "Started by a shell", Medium, "Name the program as the command and its arguments one by one.")
            }
            Self::DownloadAndRun => {
                ("W010", "Runs what it downloads", Critical, "Download it once, look at it, and start the copy.")
            }
            Self::PlainHttp => ("W011", "Remote server without encryption", High, "Use the server's https address."),
            Self::RemoteSecret => (
                "W012",
                "Secret in clear for a remote server",
                High,
                "Use the client's sign-in or a variable for it, and replace the secret itself.",
            ),
            Self::Unread => ("W013", "Not looked at", High, "Correct the file as the message says, and scan again."),
        }
    }
}

//! What the systems' windows can do in different ways.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

#[cfg(target_os = "linux")]
pub use linux::{KEEPS, PAGES_MISSING, after, before_start, hide, is_hidden, show_unfocused, watch_page};
#[cfg(not(target_os = "linux"))]
pub use other::{KEEPS, PAGES_MISSING, after, before_start, hide, is_hidden, show_unfocused, watch_page};

//! From and to the values in rows. A value that does not read is an error naming its row.

use std::path::Path;

use firedoor_model::{Digest, Millis};
use serde::{Serialize, de::DeserializeOwned};

use crate::StoreError;

/// Which row is being read.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub path: &'a Path,
    pub table: &'static str,
    pub row: &'a dyn std::fmt::Display,
}

impl At<'_> {
    /// The error for this row. `why` must not quote the value.
    pub fn bad(&self, why: impl Into<String>) -> StoreError {
        StoreError::Row {
            path: self.path.to_owned(),
            table: self.table,
            row: firedoor_model::Untrusted::new(self.row.to_string()).visible(200),
            why: why.into(),
        }
    }

    /// A JSON column. serde's own message may quote the value, so only the place is told.
    pub fn json<T: DeserializeOwned>(&self, column: &str, text: &str) -> Result<T, StoreError> {
        serde_json::from_str(text)
            .map_err(|e| self.bad(format!("{column} has {:?} error in JSON at byte {}", e.classify(), e.column())))
    }

    /// A column that holds one word of an enum, spelled as in JSON.
    pub fn word<T: DeserializeOwned>(&self, column: &str, text: &str) -> Result<T, StoreError> {
        serde_json::from_value(serde_json::Value::from(text))
            .map_err(|_| self.bad(format!("{column} has an unknown word")))
    }

    /// A column that is read by `FromStr`.
    pub fn parsed<T: std::str::FromStr>(&self, column: &str, text: &str) -> Result<T, StoreError> {
        text.parse().map_err(|_| self.bad(format!("{column} does not read")))
    }

    /// A time.
    pub fn millis(&self, value: i64) -> Result<Millis, StoreError> {
        u64::try_from(value).map(Millis).map_err(|_| self.bad("a time is negative"))
    }
}

/// The word of a unit variant, as in JSON.
pub(crate) fn word<T: Serialize>(value: &T) -> Result<String, StoreError> {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => Ok(word),
        _ => Err(StoreError::Refused { doing: "write a row", why: "a word of it has no text form" }),
    }
}

/// JSON text of a value.
pub(crate) fn json<T: Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value)
        .map_err(|_| StoreError::Refused { doing: "write a row", why: "a part of it has no JSON form" })
}

/// A time as SQLite's integer. Times after the year 292 million become that year.
pub(crate) fn sql_time(time: Millis) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

/// A digest column.
pub(crate) fn digest(bytes: &[u8]) -> Option<Digest> {
    bytes.try_into().ok().map(Digest)
}

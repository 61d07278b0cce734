//! What can be wrong with a job before it starts.

/// A configuration or a program that cannot be executed; the message names the place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl ConfigError {
    /// An error with its message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

//! Placeholder until the crate's owner writes it.

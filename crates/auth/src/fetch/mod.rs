//! Fetches documents and tokens.

//! Fixtures for the official conformance suite.

//! What the differential test is made of.

pub(crate) mod generator;
pub(crate) mod reader;

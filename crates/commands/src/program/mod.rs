//! A clap program seen as tools: its leaf commands, their schemas, and the way from a call to an argument vector.

mod argument;
mod argv;
mod leaf;
mod name;
mod probe;
mod relations;
mod schema;
mod spelling;
mod tree;
mod twin;
mod value;

pub use self::argv::ArgvError;
pub use self::leaf::Leaf;
pub use self::tree::{Tree, TreeError};

//! What is wrong with a server, and what only could be better.

mod finding;
mod offers;
mod parts;
mod report;
mod schemas;
mod strays;
mod way;

pub(crate) use self::offers::{look_at_offers, look_at_speed};
pub(crate) use self::report::Report;
pub(crate) use self::strays::Strays;
pub(crate) use self::way::look_at_way;

//! What travels between generator and server: JSON-RPC messages, HTTP/1.1 around them, and the check of each answer.

mod answer;
mod call;
mod client;
mod http;
mod message;
mod proof;
mod response;

pub(crate) use answer::{check_answer, check_call_answer};
pub(crate) use call::Call;
pub(crate) use client::Client;
pub(crate) use http::{Place, Target};
pub(crate) use message::{Era, FIRST_ID, filler, initialize, initialized};
pub(crate) use proof::{ProofKey, coordinates, generate_key, sign, token_header};
pub(crate) use response::Response;

//! Reaching servers that behave, and servers that do not.

mod http;
mod proxy;
mod scripted;
mod tls;
mod websocket;

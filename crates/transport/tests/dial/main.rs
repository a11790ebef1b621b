//! Reaching servers that behave, and servers that do not.

#[cfg(test)]
mod exchange;
#[cfg(test)]
mod http;
#[cfg(test)]
mod odd_servers;
#[cfg(test)]
mod proxy;
#[cfg(test)]
mod scripted;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod websocket;

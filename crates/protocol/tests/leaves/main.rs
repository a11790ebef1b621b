//! Tests of the byte machines and value forms: framing, headers and templates.

#[cfg(test)]
mod chunks;
#[cfg(test)]
mod header;
#[cfg(test)]
mod line;
#[cfg(test)]
mod mirror;
#[cfg(test)]
mod sse_decode;
#[cfg(test)]
mod sse_encode;
#[cfg(test)]
mod template_expand;
#[cfg(test)]
mod template_match;

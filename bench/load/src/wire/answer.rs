//! The check that an answer is the right one.
//!
//! A full JSON parse of every answer would cost the generator more than the server spends on making it, so the check
//! looks for the three things that matter where they must be: the id, the text, and no mark of an error. The bytes may
//! be a JSON body, an SSE stream or a line; the search does not mind what surrounds the message.

use anyhow::{Context as _, Result, ensure};
use memchr::memmem::Finder;

use super::response::Response;

/// Checks the HTTP response to a call.
///
/// # Errors
/// The status is not 200, or the body is not the answer to the request `id` with the text `text`.
pub(crate) fn check_call_answer(response: &Response<'_>, id: u32, text: &str) -> Result<()> {
    let status = response.status;
    ensure!(status == 200, "status {status}: {}", String::from_utf8_lossy(&response.body));
    let answered = check_answer(&response.body, text)?;
    ensure!(answered == id, "the answer is to request {answered}, not to {id}");
    Ok(())
}

/// Checks that a message carries the text as a tool's result, and gives the id that it answers.
///
/// # Errors
/// The message has no id, another text, or is an error.
pub(crate) fn check_answer(message: &[u8], text: &str) -> Result<u32> {
    let told = || format!("in `{}`", String::from_utf8_lossy(message.get(..400).unwrap_or(message)));
    let id = after(message, &ID_KEY).and_then(leading_number).context("no id").with_context(told)?;
    let rest = after(message, &TEXT_KEY).context("no text").with_context(told)?;
    let rest = rest.strip_prefix(text.as_bytes()).context("another text").with_context(told)?;
    let rest = rest.strip_prefix(b"\"").context("a longer text").with_context(told)?;
    ensure!(after(rest, &ERROR_MARK).is_none(), "a tool error {}", told());
    Ok(id)
}

static ID_KEY: std::sync::LazyLock<Finder<'static>> = std::sync::LazyLock::new(|| Finder::new(b"\"id\":"));
static TEXT_KEY: std::sync::LazyLock<Finder<'static>> =
    std::sync::LazyLock::new(|| Finder::new(b"\"text\":\""));
static ERROR_MARK: std::sync::LazyLock<Finder<'static>> =
    std::sync::LazyLock::new(|| Finder::new(b"\"isError\":true"));

fn after<'a>(bytes: &'a [u8], key: &Finder<'_>) -> Option<&'a [u8]> {
    bytes.get(key.find(bytes)? + key.needle().len()..)
}

fn leading_number(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit());
    let (count, number) = digits.fold((0, 0_u32), |(count, number), digit| {
        (count + 1, number.wrapping_mul(10).wrapping_add(u32::from(digit - b'0')))
    });
    (1..=9).contains(&count).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(message: &str, expected: Result<u32, &str>) {
        let outcome = check_answer(message.as_bytes(), "hello");
        let told = outcome.map_err(|error| error.root_cause().to_string());
        match expected {
            Ok(id) => assert_eq!(told, Ok(id)),
            Err(part) => {
                assert!(told.as_ref().is_err_and(|text| text.contains(part)), "{told:?} in {message}");
            }
        }
    }

    #[test]
    fn expected_response_text_gives_the_id() {
        check(r#"{"jsonrpc":"2.0","id":17,"result":{"content":[{"type":"text","text":"hello"}]}}"#, Ok(17));
        check(r#"{"result":{"content":[{"type":"text","text":"hello"}],"isError":false},"id":17}"#, Ok(17));
        check(
            "id: 0\ndata: \n\ndata: {\"id\":17,\"result\":{\"content\":[{\"text\":\"hello\"}]}}\n\n",
            Ok(17),
        );
    }

    #[test]
    fn wrong_response_is_detected() {
        check(r#"{"result":{"content":[{"text":"hello"}]}}"#, Err("no id"));
        check(r#"{"id":null,"result":{"content":[{"text":"hello"}]}}"#, Err("no id"));
        check(r#"{"id":17,"error":{"code":-32602,"message":"hello"}}"#, Err("no text"));
        check(r#"{"id":17,"result":{"content":[{"text":"help"}]}}"#, Err("another text"));
        check(r#"{"id":17,"result":{"content":[{"text":"hello!"}]}}"#, Err("a longer text"));
        check(r#"{"id":17,"result":{"content":[{"text":"hello"}],"isError":true}}"#, Err("a tool error"));
    }
}

use std::time::Duration;

use tokio::time::error::Elapsed;
use tokio::time::timeout;

/// Waits for a future within a timeout, which begins again as long as a user authorizes the client: a login takes minutes,
/// and has a timeout of its own.
///
/// # Errors
/// The timeout expired while no user was waited for.
pub(crate) async fn timeout_unless_waiting<F: Future>(
    within: Duration,
    is_waiting_for_user: impl Fn() -> bool,
    future: F,
) -> Result<F::Output, Elapsed> {
    let mut future = std::pin::pin!(future);
    loop {
        match timeout(within, future.as_mut()).await {
            Err(_) if is_waiting_for_user() => {}
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn timeout_is_not_due_while_a_user_is_waited_for() {
        let second = Duration::from_secs(1);
        let login = || tokio::time::sleep(90 * second);
        assert!(timeout_unless_waiting(10 * second, || true, login()).await.is_ok());
        assert!(timeout_unless_waiting(10 * second, || false, login()).await.is_err());
        let left = Cell::new(3);
        let until_third = || left.replace(left.get() - 1) > 0;
        let before = tokio::time::Instant::now();
        assert!(timeout_unless_waiting(10 * second, until_third, login()).await.is_err());
        assert_eq!(before.elapsed(), 40 * second, "it is due after the user was waited for");
    }
}

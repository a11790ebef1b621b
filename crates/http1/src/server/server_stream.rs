use tokio::io::{AsyncRead, AsyncWrite};

/// A connected stream that a server was given.
pub trait ServerStream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Sets how much memory is held for what is written from now on: whole buffers, however much of them is written.
    fn set_buffered(&mut self, bytes: usize);

    /// Reports whether the peer has reset the connection, without a read or a write.
    fn is_reset(&self) -> bool;
}

/// Signals that a server drains: requests that were read are answered, and connections close behind them.
pub trait DrainSignal: Send + Sync + 'static {
    /// A future that is ready when draining begins.
    type Draining: Future<Output = ()> + Send;

    /// Reports whether the server drains.
    fn is_draining(&self) -> bool;

    /// Returns a future that is ready when draining begins after this call.
    fn watch_draining(&self) -> Self::Draining;
}

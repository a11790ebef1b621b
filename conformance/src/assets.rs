/// A picture of one red pixel.
pub(crate) const PIXEL: &[u8] = include_bytes!("../assets/pixel.png");

/// The media type of [`PIXEL`].
pub(crate) const PNG: &str = "image/png";

/// A sound of eight samples of silence.
pub(crate) const SILENCE: &[u8] = include_bytes!("../assets/silence.wav");

/// The media type of [`SILENCE`].
pub(crate) const WAV: &str = "audio/wav";

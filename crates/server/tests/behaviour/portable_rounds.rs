//! Rounds whose state travels whole.

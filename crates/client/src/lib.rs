//! The client SDK of trunkline: any server, in any revision, over whatever reaches it.

mod carrier;

//! Gives the same bytes to our server and to hyper, and compares the requests that both read.
//!
//! Where we accept a request, hyper has to accept it too and read the same method, target, headers and body: what one reader
//! takes for a body must never be a request to another. The other way round nothing is compared, since we refuse more. The
//! requests are generated from a seed; `TRUNKLINE_DIFFERENTIAL_REQUESTS` and `TRUNKLINE_DIFFERENTIAL_SEED` set how many and
//! which.

use super::support::generator::RequestGenerator;
use super::support::reader::{ReadRequest, read_by_hyper, read_by_us};

/// A difference that is known, and why it is harmless.
struct KnownDifference {
    reason: &'static str,
    /// Brings the requests of both into a form in which only other differences are left.
    normalize: fn(&mut ReadRequest),
}

const KNOWN_DIFFERENCES: &[KnownDifference] = &[KnownDifference {
    reason: "of equal `Content-Length` headers hyper keeps the first, and we keep all; both read the same length",
    normalize: |request| {
        let mut has_length = false;
        request
            .headers
            .retain(|(name, _)| name != "content-length" || !std::mem::replace(&mut has_length, true));
    },
}];

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

#[test]
fn accepted_requests_parse_the_same_in_hyper() {
    let count = number("TRUNKLINE_DIFFERENTIAL_REQUESTS", 5_000);
    let seed = number("TRUNKLINE_DIFFERENTIAL_SEED", 1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let mut generator = RequestGenerator::new(seed);
    let (mut accepted, mut refused, mut differences) = (0_u64, 0_u64, vec![0_u64; KNOWN_DIFFERENCES.len()]);
    for index in 0..count {
        let (bytes, piece) = generator.next();
        let mut ours = runtime.block_on(read_by_us(&bytes, piece));
        let mut theirs = runtime.block_on(read_by_hyper(&bytes, piece));
        theirs.truncate(ours.len());
        for (known, met) in KNOWN_DIFFERENCES.iter().zip(&mut differences) {
            if ours != theirs {
                *met += 1;
                ours.iter_mut().chain(&mut theirs).for_each(known.normalize);
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(ours, theirs, "request {index} of seed {seed}, in pieces of {piece}:\n{text:?}");
        accepted += u64::from(!ours.is_empty());
        refused += u64::from(ours.is_empty());
    }
    println!("{accepted} connections with an accepted request, {refused} without");
    for (known, met) in KNOWN_DIFFERENCES.iter().zip(differences) {
        println!("{met} times: {}", known.reason);
    }
    // The generator has to make both, or nothing is compared.
    assert!(
        count < 1_000 || (accepted > count / 5 && refused > count / 20),
        "{accepted} of {count} were accepted"
    );
}

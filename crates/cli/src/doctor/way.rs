use std::net::IpAddr;
use std::time::Duration;

use trunkline_client::transport::dial::{DialError, DialOptions, Dialer, Route, Stage};
use trunkline_client::transport::{Target, Url};

use super::report::Report;
use crate::connect::Resolved;
use crate::exit::{Exit, Failure};

/// Looks at the way to a server before anything is said to it, as far as there is one.
///
/// # Errors
/// The way ends early; the report says where.
pub(crate) async fn look_at_way(
    resolved: &Resolved,
    within: Option<Duration>,
    report: &mut Report,
) -> Result<(), Failure> {
    match &resolved.target {
        Target::Url(url) => {
            report.good("address", &resolved.label);
            look_at_address(url, within, report).await
        }
        _ => {
            report.good("program", &resolved.label);
            Ok(())
        }
    }
}

async fn look_at_address(url: &Url, within: Option<Duration>, report: &mut Report) -> Result<(), Failure> {
    let mut options = DialOptions::default();
    if let Some(within) = within {
        options.connect_timeout = within;
    }
    match Dialer::new(options).dial(url).await {
        Ok((_, route)) => {
            tell_of_route(url, &route, report);
            Ok(())
        }
        Err(error) => {
            tell_of_failure(url, &error, report);
            Err(Failure::new(Exit::Unreachable, format!("{url} cannot be reached")))
        }
    }
}

fn tell_of_route(url: &Url, route: &Route, report: &mut Report) {
    let address = route.address.ip();
    match &route.proxy {
        Some(proxy) => {
            report.timed("dns", &format!("the proxy is at {address}"), route.resolving);
            report.timed("tcp", &format!("through the proxy {proxy}"), route.connecting);
        }
        None => {
            if is_address(url) {
                report.absent("dns", "it is an address already");
            } else {
                report.timed("dns", &format!("{} is at {address}", url.host()), route.resolving);
            }
            report.timed("tcp", &format!("connected to {}", route.address), route.connecting);
        }
    }
    match route.tls {
        Some((took, version)) => {
            report.timed("tls", &format!("{version}, and the certificate is trusted"), took);
        }
        None if url.is_loopback() => report.absent("tls", "not used, and not needed on this machine"),
        None => report.absent("tls", "not used: others on the way can read everything"),
    }
}

/// Says what went well before what did not.
fn tell_of_failure(url: &Url, error: &DialError, report: &mut Report) {
    let failed_at = match error {
        DialError::Resolve { .. } | DialError::TimedOut { stage: Stage::Resolve, .. } => "dns",
        DialError::Connect { .. } | DialError::TimedOut { stage: Stage::Connect, .. } => "tcp",
        DialError::Tls { .. } | DialError::Roots(_) | DialError::TimedOut { stage: Stage::Tls, .. } => "tls",
        _ => "proxy",
    };
    if failed_at != "dns" {
        match is_address(url) {
            true => report.absent("dns", "it is an address already"),
            false => report.good("dns", &format!("{} has an address", url.host())),
        }
    }
    if failed_at == "tls" {
        report.good("tcp", &format!("connected to {}", url.authority()));
    }
    report.problem(failed_at, &error.to_string());
}

fn is_address(url: &Url) -> bool {
    url.host().trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
}

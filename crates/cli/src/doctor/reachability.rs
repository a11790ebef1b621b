use std::net::IpAddr;
use std::time::Duration;

use trunkline_client::transport::dial::{ConnectionInfo, DialError, DialOptions, DialStage, Dialer};
use trunkline_client::transport::{Target, Url};

use super::report::DoctorReport;
use crate::connect::ResolvedTarget;
use crate::exit::{CliFailure, ExitReason};

/// Checks name resolution, connection and TLS before the first MCP request.
///
/// # Errors
/// The server cannot be reached; the report has the step that failed.
pub(crate) async fn check_reachability(
    resolved: &ResolvedTarget,
    within: Option<Duration>,
    report: &mut DoctorReport,
) -> Result<(), CliFailure> {
    match &resolved.target {
        Target::Url(url) => {
            report.passed("address", &resolved.label);
            check_address(url, within, report).await
        }
        // A program is found and started with the connection.
        _ => Ok(()),
    }
}

async fn check_address(
    url: &Url,
    within: Option<Duration>,
    report: &mut DoctorReport,
) -> Result<(), CliFailure> {
    let mut options = DialOptions::default();
    if let Some(within) = within {
        options.connect_timeout = within;
    }
    match Dialer::new(options).dial(url).await {
        Ok((_, route)) => {
            report_route(url, &route, report);
            Ok(())
        }
        Err(error) => {
            report_dial_failure(url, &error, report);
            Err(CliFailure::new(ExitReason::Unreachable, format!("cannot reach {url}")))
        }
    }
}

fn report_route(url: &Url, route: &ConnectionInfo, report: &mut DoctorReport) {
    let address = route.address.ip();
    match &route.proxy {
        Some(proxy) => {
            report.passed_in("dns", &format!("the proxy resolves to {address}"), route.resolve_time);
            report.passed_in("tcp", &format!("through the proxy {proxy}"), route.connect_time);
        }
        None => {
            if is_address(url) {
                report.not_applicable("dns", "not needed (IP address)");
            } else {
                report.passed_in("dns", &format!("{} resolves to {address}", url.host()), route.resolve_time);
            }
            report.passed_in("tcp", &format!("connected to {}", route.address), route.connect_time);
        }
    }
    match route.tls {
        Some((took, version)) => {
            report.passed_in("tls", &format!("{version}, certificate trusted"), took);
        }
        None if url.is_loopback() => report.not_applicable("tls", "not used (loopback)"),
        None => report.not_applicable("tls", "not used: traffic is not encrypted"),
    }
}

/// Reports the steps that passed before the one that failed.
fn report_dial_failure(url: &Url, error: &DialError, report: &mut DoctorReport) {
    let failed_at = match error {
        DialError::Resolve { .. } | DialError::TimedOut { stage: DialStage::Resolve, .. } => "dns",
        DialError::Connect { .. } | DialError::TimedOut { stage: DialStage::Connect, .. } => "tcp",
        DialError::Tls { .. } | DialError::Roots(_) | DialError::TimedOut { stage: DialStage::Tls, .. } => {
            "tls"
        }
        _ => "proxy",
    };
    // A proxy resolves the name of the server.
    if failed_at == "tcp" || failed_at == "tls" {
        match is_address(url) {
            true => report.not_applicable("dns", "not needed (IP address)"),
            false => report.passed("dns", &format!("{} resolved", url.host())),
        }
    }
    if failed_at == "tls" {
        report.passed("tcp", &format!("connected to {}", url.authority()));
    }
    report.problem(failed_at, &error.to_string());
}

fn is_address(url: &Url) -> bool {
    url.host().trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
}

use std::sync::Arc;
use std::time::SystemTime;

use trunkline_client::authorization::{FlowError, FlowStep, LoginDiscovery, ServerMetadata};

use super::report::DoctorReport;
use crate::login::{LoginTarget, authorizer, describe_expiry, open_store, paste_agent, scope_text};
use crate::terminal::StderrScreen;

/// The steps of a login, in their order, with the names that the report has for them.
const STEPS: [(FlowStep, &str); 3] = [
    (FlowStep::ResourceMetadata, "resource metadata"),
    (FlowStep::ServerMetadata, "authorization server"),
    (FlowStep::Registration, "registration"),
];

/// Reports the steps of a login at a server that requires one, without opening a browser.
pub(crate) async fn check_login_steps(
    target: &LoginTarget,
    screen: &Arc<StderrScreen>,
    report: &mut DoctorReport,
) {
    let store = match open_store(target.config_file.as_deref()) {
        Ok(opened) => opened.store,
        Err(failure) => return report.problem("login", &failure.to_string()),
    };
    let authorizer = match authorizer(target, paste_agent(screen, None), store, |_| {}) {
        Ok(authorizer) => authorizer,
        Err(failure) => return report.problem("login", &failure.to_string()),
    };
    match authorizer.discover().await {
        Ok(discovery) => report_discovery(&discovery, report),
        Err(error) => report.problem("login", &error.to_string()),
    }
    match authorizer.stored().await {
        Ok(Some(stored)) => {
            let user = stored.tokens.user.as_deref().map(|user| format!("as {user}, ")).unwrap_or_default();
            let expiry = describe_expiry(&stored.tokens, SystemTime::now());
            report.problem(
                "login",
                &format!("stored {user}{expiry}; the server rejects it: run `{}`", target.command()),
            );
        }
        Ok(None) => report.problem("login", &format!("none is stored: run `{}`", target.command())),
        Err(error) => report.problem("login", &error.to_string()),
    }
}

/// Describes the stored login that a connection used; `None` without one.
pub(crate) async fn describe_stored_login(
    target: &LoginTarget,
    screen: &Arc<StderrScreen>,
) -> Option<String> {
    let authorizer = authorizer(
        target,
        paste_agent(screen, None),
        open_store(target.config_file.as_deref()).ok()?.store,
        |_| {},
    )
    .ok()?;
    let tokens = authorizer.stored().await.ok()??.tokens;
    let user = tokens.user.as_deref().map(|user| format!(" as {user}")).unwrap_or_default();
    let expiry = describe_expiry(&tokens, SystemTime::now());
    Some(format!("logged in{user}; issuer {}; {expiry}", tokens.context.issuer))
}

fn report_discovery(discovery: &LoginDiscovery, report: &mut DoctorReport) {
    match discovery.is_challenged {
        true => report.passed("challenge", "requests without credentials get HTTP 401"),
        false => report.warning("challenge", "a request without credentials is not refused"),
    }
    if !discovery.has_metadata {
        return report
            .problem("resource metadata", "none found: the server may only accept tokens (`--bearer`)");
    }
    let failed = discovery.failure.as_ref().map(FlowError::step);
    let is_reached = |step: FlowStep| failed.is_none_or(|failed| step < failed);
    if is_reached(FlowStep::ResourceMetadata) {
        report_resource(discovery, report);
    }
    if let Some(server) = discovery.server.as_ref().filter(|_| is_reached(FlowStep::ServerMetadata)) {
        report_server(server, discovery, report);
    }
    if let Some(failure) = &discovery.failure {
        let name = STEPS.iter().find(|(step, _)| *step == failure.step()).map_or("login", |(_, name)| name);
        report.problem(name, &failure.to_string());
    }
}

fn report_resource(discovery: &LoginDiscovery, report: &mut DoctorReport) {
    match &discovery.resource {
        Some(resource) => {
            let scopes = discovery.resource_scopes.as_ref();
            let scopes = scopes.map(|scopes| format!(", scopes: {}", scope_text(scopes))).unwrap_or_default();
            report.passed("resource metadata", &format!("{resource}{scopes}"));
        }
        None => report.not_applicable("resource metadata", "none, as servers of 2025-03-26 have it"),
    }
}

fn report_server(server: &ServerMetadata, discovery: &LoginDiscovery, report: &mut DoctorReport) {
    report.passed("authorization server", &server.issuer);
    report.passed("pkce", &server.code_challenge_methods.join(", "));
    let mut ways = Vec::new();
    if server.is_client_document_supported {
        ways.push("client metadata documents");
    }
    if server.registration_endpoint.is_some() {
        ways.push("dynamic registration");
    }
    match ways.is_empty() {
        true => report.not_applicable("registration", "by hand only: `trunkline login --client-id ID`"),
        false => report.passed("registration", &ways.join(", ")),
    }
    report.passed("scopes", &scope_text(&discovery.scopes));
    if !server.dpop_signing_algorithms.is_empty() {
        report.passed("dpop", &server.dpop_signing_algorithms.join(", "));
    }
}

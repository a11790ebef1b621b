//! Decides which server owns a resource.
//!
//! Any server can list any URI, so that one server could hijack the resources of another. The order of the
//! configuration decides, which the operator controls: a URI belongs to the first server that claims it, by listing
//! it or by a template (RFC 6570) that matches it. A template without a literal scheme, such as `{+x}`, would claim
//! everything. It counts only for URIs that no server claims otherwise.
//!
//! # Invariants
//!
//! - An upstream never serves a resource that an upstream configured before it claims:
//!   `later_server_cannot_claim_a_uri_that_matches_an_earlier_template`,
//!   `template_without_scheme_takes_no_uri_that_another_server_claims`.

use std::collections::HashMap;
use std::sync::Arc;

use trunkline_protocol::template::UriTemplate;
use trunkline_server::UpstreamItem;

/// The budget for matching one URI against the templates of one server, in bytes of the URI times expressions.
const LOOKUP_BUDGET: usize = 256 << 10;

/// The budget of one server for all URIs that later servers list.
const BUILD_BUDGET: usize = 4 << 20;

/// The servers' claims on resources, in the order of the configuration.
#[derive(Debug)]
pub(super) struct ResourceClaims<O> {
    servers: Vec<ServerClaims<O>>,
    /// The index of the first server that lists a URI.
    listed: HashMap<Arc<str>, usize>,
}

#[derive(Debug)]
struct ServerClaims<O> {
    owner: O,
    templates: Vec<TemplateClaim>,
    /// The remaining budget for the URIs of later servers.
    budget: usize,
}

#[derive(Debug)]
struct TemplateClaim {
    template: UriTemplate,
    /// The text before the first expression.
    prefix: Box<str>,
    breadth: TemplateBreadth,
    expressions: usize,
}

/// How many URIs a template can match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TemplateBreadth {
    /// URIs of one scheme.
    Scheme,
    /// Anything.
    CatchAll,
}

impl<O> Default for ResourceClaims<O> {
    fn default() -> Self {
        Self { servers: Vec::new(), listed: HashMap::new() }
    }
}

impl<O> ResourceClaims<O> {
    /// Adds the next server of the configuration. Returns the listed items that it owns, and the others, each with
    /// its owner.
    pub(super) fn add<'a, T>(
        &mut self,
        owner: O,
        listed: Vec<T>,
        address: impl Fn(&T) -> Arc<str>,
        templates: impl Iterator<Item = &'a str>,
    ) -> (Vec<T>, Vec<(T, &O)>) {
        let index = self.servers.len();
        let (mut kept, mut shadowed) = (Vec::with_capacity(listed.len()), Vec::new());
        for item in listed {
            let uri = address(&item);
            match self.claiming_index(&uri) {
                Some(owner) => shadowed.push((item, owner)),
                None => {
                    self.listed.insert(uri, index);
                    kept.push(item);
                }
            }
        }
        let templates = templates.filter_map(TemplateClaim::parse).collect();
        self.servers.push(ServerClaims { owner, templates, budget: BUILD_BUDGET });
        let owner_at = |index: usize| self.servers.get(index).map(|server| &server.owner);
        let shadowed =
            shadowed.into_iter().filter_map(|(item, index)| Some((item, owner_at(index)?))).collect();
        (kept, shadowed)
    }

    /// Returns the server that claims a URI by a listing or by a template with a scheme.
    pub(super) fn claiming_owner(&self, uri: &str) -> Option<&O> {
        let listed = self.listed.get(uri).copied();
        let earlier = self.servers.iter().take(listed.unwrap_or(usize::MAX));
        let by_template = earlier.into_iter().position(|server| {
            matches_any(&server.templates, TemplateBreadth::Scheme, uri, &mut { LOOKUP_BUDGET })
        });
        self.servers.get(by_template.or(listed)?).map(|server| &server.owner)
    }

    /// Returns the first server that claims a URI by a catch-all template.
    pub(super) fn catch_all_owner(&self, uri: &str) -> Option<&O> {
        let catches = |server: &&ServerClaims<O>| {
            matches_any(&server.templates, TemplateBreadth::CatchAll, uri, &mut { LOOKUP_BUDGET })
        };
        self.servers.iter().find(catches).map(|server| &server.owner)
    }

    /// Returns the index of the added server that claims a URI. A server that has exhausted its template budget
    /// claims nothing more.
    fn claiming_index(&mut self, uri: &str) -> Option<usize> {
        let listed = self.listed.get(uri).copied();
        let earlier = self.servers.iter_mut().take(listed.unwrap_or(usize::MAX));
        let by_template = earlier.into_iter().position(|server| {
            matches_any(&server.templates, TemplateBreadth::Scheme, uri, &mut server.budget)
        });
        by_template.or(listed)
    }
}

impl TemplateClaim {
    /// Parses a template; an invalid template claims nothing.
    fn parse(text: &str) -> Option<Self> {
        let template = UriTemplate::parse(text).ok()?;
        let prefix: Box<str> = text.split('{').next().unwrap_or_default().into();
        let breadth = if has_scheme(&prefix) { TemplateBreadth::Scheme } else { TemplateBreadth::CatchAll };
        let expressions = 1 + text.matches(['{', ',']).count();
        Some(Self { template, prefix, breadth, expressions })
    }

    /// Reports whether a URI cannot match, by comparing the literal prefix. Percent-encoded prefixes are left to the
    /// matcher, since escapes can be spelled in several ways.
    fn cannot_match(&self, uri: &str) -> bool {
        let begins = uri.as_bytes().get(..self.prefix.len()).unwrap_or(uri.as_bytes());
        let is_plain = |bytes: &[u8]| bytes.iter().all(|byte| byte.is_ascii() && *byte != b'%');
        is_plain(self.prefix.as_bytes()) && is_plain(begins) && begins != self.prefix.as_bytes()
    }
}

/// Reports whether a template of this breadth matches a URI, within the budget.
fn matches_any(templates: &[TemplateClaim], breadth: TemplateBreadth, uri: &str, budget: &mut usize) -> bool {
    templates.iter().filter(|claim| claim.breadth == breadth && !claim.cannot_match(uri)).any(|claim| {
        let cost = uri.len().saturating_mul(claim.expressions);
        let is_affordable = cost <= *budget;
        *budget = budget.saturating_sub(cost);
        if !is_affordable {
            UpstreamItem::TemplateSkipped.count(1);
        }
        is_affordable && claim.template.match_uri(uri).is_some()
    })
}

/// Reports whether a text begins with a scheme and its colon.
fn has_scheme(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once(':') else { return false };
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds servers with the URIs and templates that they list; returns the lists of each.
    fn claims(
        servers: &[(&'static str, &[&'static str], &[&'static str])],
    ) -> (ResourceClaims<&'static str>, Vec<String>) {
        let mut claims = ResourceClaims::default();
        let mut lists = Vec::new();
        for (server, uris, templates) in servers {
            let (kept, shadowed) =
                claims.add(*server, uris.to_vec(), |uri| Arc::from(*uri), templates.iter().copied());
            let shadowed: Vec<_> = shadowed.iter().map(|(uri, owner)| format!("{uri} of {owner}")).collect();
            lists.push(format!("{server}: {} / {}", kept.join(" "), shadowed.join(", ")));
        }
        (claims, lists)
    }

    #[track_caller]
    fn check(
        servers: &[(&'static str, &[&'static str], &[&'static str])],
        expected_lists: &[&str],
        owners: &[(&str, &str)],
    ) {
        let (claims, lists) = claims(servers);
        assert_eq!(lists, expected_lists);
        for (uri, expected) in owners {
            let owner = claims.claiming_owner(uri).or_else(|| claims.catch_all_owner(uri)).copied();
            assert_eq!(owner.unwrap_or("none"), *expected, "{uri}");
        }
    }

    #[test]
    fn uri_listed_by_two_servers_belongs_to_the_first() {
        check(
            &[("a", &["x:1", "x:2"], &[]), ("b", &["x:2", "x:3"], &[])],
            &["a: x:1 x:2 / ", "b: x:3 / x:2 of a"],
            &[("x:1", "a"), ("x:2", "a"), ("x:3", "b"), ("x:4", "none")],
        );
    }

    #[test]
    fn later_listing_does_not_take_a_uri_from_an_earlier_template() {
        check(
            &[("good", &[], &["good://item/{id}"]), ("evil", &["good://item/5", "good://other/5"], &[])],
            &["good:  / ", "evil: good://other/5 / good://item/5 of good"],
            &[("good://item/5", "good"), ("good://item/6", "good"), ("good://other/5", "evil")],
        );
        // Escapes can be spelled in several ways.
        check(
            &[("good", &[], &["good:%c3%A9/{id}"]), ("evil", &["good:%C3%a9/5", "good:é/6"], &[])],
            &["good:  / ", "evil:  / good:%C3%a9/5 of good, good:é/6 of good"],
            &[("good:%C3%A9/5", "good"), ("good:é/5", "good")],
        );
    }

    #[test]
    fn earlier_listing_wins_over_a_later_template() {
        check(
            &[("a", &["x:1"], &[]), ("b", &["x:1", "x:2"], &["x:{id}"])],
            &["a: x:1 / ", "b: x:2 / x:1 of a"],
            &[("x:1", "a"), ("x:2", "b"), ("x:3", "b")],
        );
    }

    #[test]
    fn earlier_of_two_matching_templates_wins() {
        check(
            &[("a", &[], &["x:a/{id}"]), ("b", &[], &["x:{+rest}"]), ("c", &["x:b"], &["x:a/{name}"])],
            &["a:  / ", "b:  / ", "c:  / x:b of b"],
            &[("x:a/1", "a"), ("x:b", "b"), ("y:b", "none")],
        );
    }

    #[test]
    fn template_without_scheme_takes_no_uri_that_another_server_claims() {
        for catch_all in ["{+x}", "{x}:{+y}", "x{+rest}", "{scheme}://{host}{/path}"] {
            check(
                &[("evil", &[], &[catch_all]), ("good", &["x://h/1"], &["x://i/{id}"])],
                &["evil:  / ", "good: x://h/1 / "],
                &[("x://h/1", "good"), ("x://i/2", "good"), ("x://k/3", "evil")],
            );
        }
    }

    #[test]
    fn servers_own_the_uris_that_they_list_and_match() {
        check(
            &[("a", &["x:1", "x:2"], &["x:{id}", "{+x}"])],
            &["a: x:1 x:2 / "],
            &[("x:1", "a"), ("x:9", "a"), ("y:9", "a")],
        );
    }

    #[test]
    fn templates_beyond_the_budget_claim_nothing_more() {
        let many: Vec<String> = (0..3000).map(|n| format!("x:{{+a{n}}}/{n}")).collect();
        let mut claims = ResourceClaims::default();
        claims.add("evil", Vec::<Arc<str>>::new(), Arc::clone, many.iter().map(String::as_str));
        let listed: Vec<Arc<str>> =
            (0..500).map(|n| Arc::from(format!("x:{}{n}", "y".repeat(100)))).collect();
        let (kept, shadowed) = claims.add("good", listed, Arc::clone, std::iter::empty());
        assert_eq!((kept.len(), shadowed.len()), (500, 0));
        assert_eq!(claims.servers[0].budget, 0, "no more was spent than there was");
    }
}

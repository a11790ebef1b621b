use std::collections::BTreeMap;
use std::sync::Arc;

use trunkline_config::ServerName;

use super::ownership::ResourceClaims;
use super::{
    HubRegistry, HubToolEntry, RegistryEntry, ServerAdvice, ToolTarget, UpstreamOffer, requires_task,
    resource_tools,
};
use crate::names::{ItemKind, NameCollision, NameTemplate, NamedItem, assign};

/// The most characters of one server's instructions.
pub(crate) const MAX_INSTRUCTIONS_CHARS: usize = 8 * 1024;

/// Whether two tools give access to resources to agents without resource support.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResourceTools {
    /// The tools are exposed, as long as any server has resources.
    #[default]
    Enabled,
    /// The tools are not exposed.
    Disabled,
}

impl<O: Clone> HubRegistry<O> {
    /// Merges the servers' offers. Their order, that of the configuration, decides which server owns a resource, and
    /// the order of the instructions.
    pub(crate) fn build(template: &NameTemplate, tools: ResourceTools, offers: &[UpstreamOffer<O>]) -> Self {
        let mut registry = Self::default();
        // The in-process server decides about its tools itself.
        let is_upstream =
            |offer: &UpstreamOffer<O>| offer.listing.has_resources && !offer.keeps_original_names;
        let has_resource_tools = tools == ResourceTools::Enabled && offers.iter().any(is_upstream);
        let own: &[&str] =
            if has_resource_tools { &[resource_tools::LIST_TOOL, resource_tools::READ_TOOL] } else { &[] };
        registry.add_tools(template, offers, own);
        registry.add_prompts(template, offers);
        registry.add_resources(offers);
        registry.add_templates(offers);
        let has_resources = |offer: &&UpstreamOffer<O>| offer.listing.has_resources;
        registry.with_resources = offers
            .iter()
            .filter(has_resources)
            .map(|offer| (offer.server.clone(), offer.owner.clone()))
            .collect();
        if has_resource_tools {
            for (tool, target) in [
                (resource_tools::list_tool(), ToolTarget::ListResources),
                (resource_tools::read_tool(), ToolTarget::ReadResource),
            ] {
                let entry = Arc::new(HubToolEntry::new(target, tool));
                registry.tools.entry(entry.tool().name.as_str().into()).or_insert(entry);
            }
        }
        let advice = offers.iter().map(|offer| ServerAdvice {
            server: offer.server.clone(),
            instructions: offer.instructions.clone(),
        });
        registry.advice = advice.collect();
        registry.instructions = join_instructions(registry.advice.iter());
        registry
    }

    fn add_tools(&mut self, template: &NameTemplate, offers: &[UpstreamOffer<O>], own: &[&str]) {
        let mut offered = Vec::new();
        // The in-process server may define the resource tools in place of the hub.
        let within = offers.iter().filter(|offer| offer.keeps_original_names);
        let within: Vec<_> =
            within.flat_map(|offer| offer.listing.tools.iter().map(|tool| &*tool.name)).collect();
        let own: Vec<_> = own.iter().filter(|name| !within.contains(name)).copied().collect();
        for offer in offers {
            let tools = offer.listing.tools.iter();
            let tools = tools.filter(|tool| offer.rules.allows(&tool.name) && !requires_task(tool));
            offered.extend(dedup_by_key(tools, |tool| &tool.name).into_iter().map(|tool| (offer, tool)));
        }
        let items: Vec<_> = offered
            .iter()
            .map(|(offer, tool)| offer.named_item(template, offer.rules.exposed_name(&tool.name)))
            .collect();
        let (names, collisions) = assign(ItemKind::Tool, &items, &own);
        for ((offer, tool), name) in offered.into_iter().zip(names) {
            let Some(name) = name else { continue };
            let target = match offer.is_login {
                true => ToolTarget::Login(offer.owner.clone()),
                false => ToolTarget::Upstream(offer.owner.clone(), tool.name.as_str().into()),
            };
            let mut tool = tool.clone();
            if let Some(description) = offer.rules.description_of(&tool.name) {
                tool.description = Some(description.to_owned());
            }
            tool.name.clone_from(&name);
            self.tools.insert(name.into(), Arc::new(HubToolEntry::new(target, tool)));
        }
        self.collisions.extend(collisions);
    }

    fn add_prompts(&mut self, template: &NameTemplate, offers: &[UpstreamOffer<O>]) {
        let mut offered = Vec::new();
        for offer in offers {
            let prompts = dedup_by_key(offer.listing.prompts.iter(), |prompt| &prompt.name);
            offered.extend(prompts.into_iter().map(|prompt| (offer, prompt)));
        }
        let items: Vec<_> =
            offered.iter().map(|(offer, prompt)| offer.named_item(template, &prompt.name)).collect();
        let (names, collisions) = assign(ItemKind::Prompt, &items, &[]);
        for ((offer, prompt), name) in offered.into_iter().zip(names) {
            let Some(name) = name else { continue };
            let (real, mut prompt): (Arc<str>, _) = (prompt.name.as_str().into(), prompt.clone());
            prompt.name.clone_from(&name);
            self.prompts.insert(name.into(), Arc::new(RegistryEntry::new(offer.owner.clone(), real, prompt)));
        }
        self.collisions.extend(collisions);
    }

    /// Adds resources, each under the server that owns it.
    fn add_resources(&mut self, offers: &[UpstreamOffer<O>]) {
        let mut claims = ResourceClaims::default();
        let mut shadowed = ShadowedItems::new(ItemKind::Resource);
        for offer in offers {
            let resources = dedup_by_key(offer.listing.resources.iter(), |resource| &resource.uri);
            let listed: Vec<_> =
                resources.into_iter().map(|each| (Arc::<str>::from(&*each.uri), each)).collect();
            let templates = offer.listing.templates.iter().map(|template| &*template.uri_template);
            let owner = (offer.server.clone(), offer.owner.clone());
            let (kept, lost) = claims.add(owner, listed, |(uri, _)| uri.clone(), templates);
            for ((uri, _), (owner, _)) in lost {
                shadowed.record(&uri, owner, &offer.server);
            }
            self.resources.extend(kept.into_iter().map(|(uri, resource)| {
                let entry = RegistryEntry::new(offer.owner.clone(), uri.clone(), resource.clone());
                (uri, Arc::new(entry))
            }));
        }
        self.claims = Arc::new(claims);
        self.collisions.extend(shadowed.into_collisions());
    }

    /// Adds templates; duplicates keep the first server's.
    fn add_templates(&mut self, offers: &[UpstreamOffer<O>]) {
        let mut owners: BTreeMap<Arc<str>, &ServerName> = BTreeMap::new();
        let mut shadowed = ShadowedItems::new(ItemKind::Template);
        for offer in offers {
            for template in dedup_by_key(offer.listing.templates.iter(), |template| &template.uri_template) {
                let text: Arc<str> = template.uri_template.as_str().into();
                match owners.get(&text) {
                    Some(owner) => shadowed.record(&text, owner, &offer.server),
                    None => {
                        let entry = RegistryEntry::new(offer.owner.clone(), text.clone(), template.clone());
                        self.templates.insert(text.clone(), Arc::new(entry));
                        owners.insert(text, &offer.server);
                    }
                }
            }
        }
        self.collisions.extend(shadowed.into_collisions());
    }
}

/// Items that are left out because they belong to another server.
struct ShadowedItems {
    kind: ItemKind,
    /// By URI: the owner, then the servers that listed it too.
    by_address: BTreeMap<Arc<str>, Vec<ServerName>>,
}

impl ShadowedItems {
    fn new(kind: ItemKind) -> Self {
        Self { kind, by_address: BTreeMap::new() }
    }

    fn record(&mut self, address: &Arc<str>, owner: &ServerName, other: &ServerName) {
        let servers = self.by_address.entry(address.clone()).or_insert_with(|| vec![owner.clone()]);
        servers.push(other.clone());
    }

    fn into_collisions(self) -> impl Iterator<Item = NameCollision> {
        self.by_address.into_iter().map(move |(address, servers)| {
            let is_owner = std::iter::once(true).chain(std::iter::repeat(false));
            let owners = servers.into_iter().zip(is_owner).map(|(server, is_owner)| {
                (server, address.to_string(), is_owner.then(|| address.to_string()))
            });
            NameCollision { kind: self.kind, name: address.to_string(), owners: owners.collect() }
        })
    }
}

impl<O> UpstreamOffer<O> {
    fn named_item<'a>(&'a self, template: &'a NameTemplate, name: &'a str) -> NamedItem<'a> {
        const VERBATIM: &NameTemplate = &NameTemplate::verbatim();
        let template = if self.keeps_original_names { VERBATIM } else { template };
        NamedItem { template, server: &self.server, name }
    }
}

/// Drops items that one server lists twice.
fn dedup_by_key<'a, T>(items: impl Iterator<Item = &'a T>, key: impl Fn(&T) -> &String) -> Vec<&'a T> {
    let mut seen = std::collections::HashSet::new();
    items.filter(|item| seen.insert(key(item).clone())).collect()
}

/// Joins the servers' instructions, each under its server's name; those of a single server stay as they are.
pub(super) fn join_instructions<'a>(servers: impl Iterator<Item = &'a ServerAdvice>) -> Option<String> {
    let mut count = 0;
    let advice: Vec<_> = servers
        .filter_map(|server| {
            count += 1;
            let text = server.instructions.as_deref()?.trim();
            let shortened: String = text.chars().take(MAX_INSTRUCTIONS_CHARS).collect();
            (!shortened.is_empty()).then_some((&server.server, shortened))
        })
        .collect();
    match (advice.as_slice(), count) {
        ([], _) => None,
        ([(_, text)], 1) => Some(text.clone()),
        (several, _) => {
            let parts: Vec<_> =
                several.iter().map(|(server, text)| format!("# {server}\n\n{text}")).collect();
            Some(parts.join("\n\n"))
        }
    }
}

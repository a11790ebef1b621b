//! 2024-11-05: the first release. Text, images, embedded resources; tools, prompts, resources, sampling and roots.
//!
//! See [Specification 2024-11-05](https://modelcontextprotocol.io/specification/2024-11-05).

use super::Dialect;
use crate::revision::Revision;

pub(super) const DIALECT: Dialect = Dialect {
    revision: Revision::V2024_11_05,
    tool_annotations: false,
    title: false,
    icons: false,
    implementation_details: false,
    entity_meta: false,
    last_modified: false,
    audio: false,
    resource_link: false,
    structured: false,
    structured_any: false,
    progress_message: false,
    completion_context: false,
    // Completion exists, but no capability declares it.
    completions_flag: false,
    extensions: false,
    elicitation: false,
    elicitation_modes: false,
    elicitation_id: false,
    rich_forms: false,
    sampling_tools: false,
    result_type: false,
    cache_hints: false,
    server_info: false,
};

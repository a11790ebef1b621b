use std::sync::Arc;

use trunkline_session::Principal;

use crate::access_grant::AccessGrant;

/// The verified identity of a caller: its principal, and what its credential grants.
///
/// What a caller may see and use depends on nothing else.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CallerIdentity<'a> {
    /// The principal.
    pub principal: &'a Principal,
    /// What the credential grants; `None` for a caller without one.
    pub grant: Option<&'a Arc<AccessGrant>>,
}

impl<'a> CallerIdentity<'a> {
    /// The identity of a caller without a credential.
    pub const ANONYMOUS: CallerIdentity<'static> =
        CallerIdentity { principal: &Principal::Anonymous, grant: None };

    /// Makes an identity.
    pub fn new(principal: &'a Principal, grant: Option<&'a Arc<AccessGrant>>) -> Self {
        Self { principal, grant }
    }
}

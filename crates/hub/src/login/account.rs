use std::fmt;
use std::sync::Arc;

use trunkline_session::Principal;

use super::LoginAudience;

/// The user that tokens belong to: the principal of the token store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Account(Arc<str>);

/// The user of this machine.
const LOCAL: &str = "local";

impl Account {
    /// Returns the account of a principal; `None` if its clients cannot be distinguished.
    pub(super) fn of(audience: LoginAudience, principal: &Principal) -> Option<Self> {
        match (audience, principal) {
            (LoginAudience::LocalUser, _) | (LoginAudience::EachPrincipal, Principal::Process) => {
                Some(Self::local())
            }
            (LoginAudience::EachPrincipal, Principal::Anonymous) => None,
            // The prefix keeps a principal that is named like another kind apart from it.
            (LoginAudience::EachPrincipal, Principal::Named(name)) => {
                Some(Self(format!("user:{name}").into()))
            }
        }
    }

    pub(crate) fn local() -> Self {
        Self(LOCAL.into())
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_of_different_principals_differ() {
        use LoginAudience::{EachPrincipal, LocalUser};
        let named = |name: &str| Principal::Named(name.into());
        for (audience, principal, expected) in [
            (LocalUser, Principal::Anonymous, Some("local")),
            (LocalUser, Principal::Process, Some("local")),
            (LocalUser, named("ann"), Some("local")),
            (EachPrincipal, Principal::Anonymous, None),
            (EachPrincipal, Principal::Process, Some("local")),
            (EachPrincipal, named("ann"), Some("user:ann")),
            (EachPrincipal, named("local"), Some("user:local")),
            (EachPrincipal, named("*"), Some("user:*")),
        ] {
            let account = Account::of(audience, &principal).map(|account| account.to_string());
            assert_eq!(account.as_deref(), expected, "{audience:?} {principal:?}");
        }
    }
}

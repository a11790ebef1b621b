//! Keys in the keychain of the system.

use keyring::Error;
use keyring::v1::Entry;
use zeroize::Zeroizing;

use super::key::StoreKeyError;

/// The program that the entries of the keychain belong to.
const SERVICE: &str = "trunkline";

/// Reads the secret of a name, and makes one if there is none.
pub(super) fn read_or_create(name: &str, length: usize) -> Result<Zeroizing<Vec<u8>>, StoreKeyError> {
    let failed = |error: Error| StoreKeyError::Keychain(error.to_string());
    let entry = Entry::new(SERVICE, name).map_err(failed)?;
    let secret = match entry.get_secret() {
        Err(Error::NoEntry) => {
            let mut secret = Zeroizing::new(vec![0; length]);
            let no_random = |_| StoreKeyError::Keychain("the system has no random numbers".to_owned());
            getrandom::fill(&mut secret).map_err(no_random)?;
            entry.set_secret(&secret).map_err(failed)?;
            // Another process may have made one at the same time, and the last one counts.
            entry.get_secret()
        }
        known => known,
    };
    let secret = Zeroizing::new(secret.map_err(failed)?);
    match secret.len() < length {
        true => Err(StoreKeyError::Keychain(format!("the entry `{name}` of {SERVICE} is too short"))),
        false => Ok(secret),
    }
}

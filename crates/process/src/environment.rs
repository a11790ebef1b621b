use std::collections::BTreeMap;
use std::ffi::OsString;

use super::command::Command;

/// The variables that every child inherits: programs need them to find others, their home and their language.
#[cfg(not(windows))]
const INHERITED_VARIABLES: &[&str] = &[
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_ADDRESS",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_IDENTIFICATION",
    "LC_MEASUREMENT",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NAME",
    "LC_NUMERIC",
    "LC_PAPER",
    "LC_TELEPHONE",
    "LC_TIME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TMPDIR",
    "TZ",
    "USER",
];

/// The variables that every child inherits: without some of them not even sockets work on Windows.
#[cfg(windows)]
const INHERITED_VARIABLES: &[&str] = &[
    "ALLUSERSPROFILE",
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "NUMBER_OF_PROCESSORS",
    "OS",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// The variables that every child inherits because a company's network may work only with them: its proxy, and the
/// certificates that its proxy signs with.
const NETWORK_VARIABLES: &[&str] = &[
    "ALL_PROXY",
    "CURL_CA_BUNDLE",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// The `PATH` of children if this process has none.
#[cfg(not(windows))]
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Builds the environment of a child: the base, then inherited variables, then those set on the command.
pub(super) fn child_environment(command: &Command) -> BTreeMap<OsString, OsString> {
    let mut environment = BTreeMap::new();
    #[cfg(not(windows))]
    {
        environment.insert("PATH".into(), DEFAULT_PATH.into());
        // A child has no terminal that could interpret escape sequences.
        environment.insert("TERM".into(), "dumb".into());
    }
    let base = INHERITED_VARIABLES.iter().chain(NETWORK_VARIABLES).map(OsString::from);
    for name in base.chain(command.inherited.iter().cloned()) {
        if let Some(value) = std::env::var_os(&name) {
            environment.insert(name, value);
        }
    }
    environment.extend(command.environment.iter().map(|(name, value)| (name.clone(), value.clone())));
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_variables_override_inherited_and_base_variables() {
        // Tests of this crate do not change their own environment; cargo sets this variable for them.
        let ours = std::env::var_os("CARGO_MANIFEST_DIR").unwrap();
        let name = OsString::from("CARGO_MANIFEST_DIR");
        let bare = child_environment(&Command::new("x"));
        assert_eq!(bare.get(&name), None);
        let passed = child_environment(&Command::new("x").inherit(&name).inherit("NO_SUCH_VARIABLE"));
        assert_eq!(passed.get(&name), Some(&ours));
        assert_eq!(passed.get(&OsString::from("NO_SUCH_VARIABLE")), None);
        let listed =
            child_environment(&Command::new("x").inherit(&name).env(&name, "listed").env("PATH", "/nowhere"));
        assert_eq!(listed.get(&name), Some(&OsString::from("listed")));
        assert_eq!(listed.get(&OsString::from("PATH")), Some(&OsString::from("/nowhere")));
    }
}

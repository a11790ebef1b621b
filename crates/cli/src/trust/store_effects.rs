use std::path::Path;

use super::setting_item::SettingEffects;
use super::setting_table::SettingText;
use crate::values::StoreLocation;

/// Returns what a store of sessions writes, connects to and reads. The password in a URL is not shown.
pub(super) fn store_effects(location: SettingText<'_>, folder: &Path) -> Option<SettingEffects> {
    let mut effects = SettingEffects::default();
    let place = match location.expanded.parse::<StoreLocation>() {
        Ok(StoreLocation::Memory) if location.written == location.expanded => return None,
        Ok(StoreLocation::File(_)) => {
            let path = |text| str::strip_prefix(text, "file:").unwrap_or(text);
            let file = SettingText { written: path(location.written), expanded: path(location.expanded) };
            effects.file(folder, file)
        }
        Ok(StoreLocation::Redis(url)) => {
            let address = url.address(|name| std::env::var(name).ok());
            if let Ok(address) = &address {
                effects.add_redis_files(address.password_file(), address.ca_file(), folder);
            }
            match address {
                Ok(address) if !location.written.contains("${") => address.to_string(),
                // The value of a variable may be a secret in any part of the URL.
                Ok(_) | Err(_) => without_credentials(location.written),
            }
        }
        Ok(StoreLocation::Memory) | Err(_) => without_credentials(location.written),
    };
    effects.line = format!("stores sessions in {place}");
    Some(effects)
}

impl SettingEffects {
    fn add_redis_files(&mut self, password: Option<&Path>, authorities: Option<&Path>, folder: &Path) {
        let mut shown = |file: Option<&Path>| {
            let file = file?.to_str()?;
            Some(self.file(folder, SettingText { written: file, expanded: file }))
        };
        let password = shown(password).map(|file| format!("sends the first line of {file} as the password"));
        let authorities = shown(authorities).map(|file| format!("trusts the authorities in {file}"));
        self.details.extend(password.into_iter().chain(authorities));
    }
}

/// Returns the scheme of a URL, and what follows its credentials. Where these end is not known of a malformed URL: they may
/// have any character but the last `@`, and without one the URL may be nothing but credentials.
fn without_credentials(url: &str) -> String {
    let is_scheme = |text: &&str| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'+');
    let scheme = url.split_once("://").map(|(scheme, _)| scheme).filter(is_scheme);
    match (scheme, url.rsplit_once('@')) {
        (Some(scheme), Some((_, after))) => format!("{scheme}://{after}"),
        (Some(scheme), None) => format!("{scheme}://…"),
        (None, Some((_, after))) => after.to_owned(),
        (None, None) => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(written: &str, expanded: &str) -> String {
        let effects = store_effects(SettingText { written, expanded }, Path::new("/nowhere")).unwrap();
        [vec![effects.line], effects.details].concat().join("; ")
    }

    #[test]
    fn password_of_a_store_is_never_shown() {
        for (written, expanded, expected) in [
            ("redis://:s3cret@h", "redis://:s3cret@h", "redis://:***@h:6379/0"),
            ("redis://:s3cret@h:port", "redis://:s3cret@h:port", "redis://h:port"),
            ("redis://:s3c/r?e@t@h/x", "redis://:s3c/r?e@t@h/x", "redis://h/x"),
            ("redis://u:s3cret${X}@h", "redis://u:s3cretv4lue@h", "redis://h"),
            ("redis://:s3cret", "redis://:s3cret", "redis://…"),
            ("${URL}", "redis://u:s3cret@v4lue", "${URL}"),
            ("s3cret@h", "s3cret@h", "h"),
            ("file:${X}", "file:v4lue", "${X}"),
        ] {
            let seen = shown(written, expanded);
            assert_eq!(seen, format!("stores sessions in {expected}"), "{written}");
        }
        let files = shown("redis://${X}@h?password_file=s", "redis://v4lue@h?password_file=s");
        let expected = "stores sessions in redis://h?password_file=s; sends the first line of /nowhere/s as the password";
        assert_eq!(files, expected);
    }
}

//! Groups with one member: many systems give every user one, and files are writable for it by default.

/// Reports whether a group is the user's own, so that no other user is in it.
pub(super) fn is_own(group: u32, user: u32) -> bool {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    is_own_in(&read("/etc/passwd"), &read("/etc/group"), group, user)
}

/// Decides by the two tables of the system. A group that is not in them could have any members.
fn is_own_in(users: &str, groups: &str, group: u32, user: u32) -> bool {
    let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
    let number = |fields: &[String], at: usize| fields.get(at).and_then(|field| field.parse::<u32>().ok());
    let users: Vec<Vec<String>> = users.lines().map(fields).collect();
    let Some(name) = users.iter().find(|fields| number(fields, 2) == Some(user)).and_then(|own| own.first())
    else {
        return false;
    };
    let is_of_others =
        users.iter().any(|fields| number(fields, 3) == Some(group) && number(fields, 2) != Some(user));
    let mut named = groups.lines().map(fields).filter(|fields| number(fields, 2) == Some(group)).peekable();
    let has_entry = named.peek().is_some();
    let has_only_user = named.all(|fields| {
        let members = fields.get(3).map_or("", String::as_str);
        fields.first() == Some(name) && members.split(',').all(|member| member.is_empty() || member == name)
    });
    has_entry && has_only_user && !is_of_others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_group_of_one_user_is_their_own() {
        let users = "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\nbob:x:1001:100::/home/bob:\n\
                     eve:x:1002:100::/home/eve:\n";
        let groups =
            "root:x:0:\nusers:x:100:\nann:x:1000:\nteam:x:2000:ann\nbob:x:1001:ann\neve:x:1002:eve\n";
        for (group, user, expected) in [
            (1000, 1000, true),
            (0, 0, true),
            (1002, 1002, true),
            (100, 1001, false),
            (2000, 1000, false),
            (1001, 1001, false),
            (1000, 1001, false),
            (3000, 1000, false),
            (1000, 4000, false),
        ] {
            assert_eq!(is_own_in(users, groups, group, user), expected, "{group} {user}");
        }
        assert!(!is_own_in("", "", 1000, 1000));
    }
}

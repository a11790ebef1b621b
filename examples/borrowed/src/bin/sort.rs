//! The `sort` of uutils as it is published, as a server too.

fn main() {
    // Without the flags to serve, this parses the command line as `sort` does, and prints its errors.
    let _ = trunkline_commands::matches(uu_sort::uu_app());
    std::process::exit(uu_sort::uumain(std::env::args_os()));
}

//! The `sort` of uutils as it is published, as a server too.

fn main() {
    // Without the flags to serve, this reads the command line as `sort` will, and tells what is wrong with it.
    let _ = trunkline_commands::matches(uu_sort::uu_app());
    std::process::exit(uu_sort::uumain(std::env::args_os()));
}

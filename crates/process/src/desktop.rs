use std::io;
use std::process::Stdio;

/// Opens a page in the user's browser.
///
/// The browser belongs to the user and not to this process: unlike every other child it is in no process-group table and
/// outlives us. The URL is one argument of a program, and never part of a shell's command line.
///
/// # Errors
/// There is no program that opens pages, as on a machine without a desktop.
pub fn open_page(url: &str) -> io::Result<()> {
    let (program, arguments): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("rundll32", &["url.dll,FileProtocolHandler"])
    } else {
        ("xdg-open", &[])
    };
    #[expect(clippy::disallowed_methods, reason = "this is the crate that starts processes")]
    let mut command = std::process::Command::new(program);
    command.args(arguments).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Ctrl-C at our terminal is not meant for the browser.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn()?;
    // It ends when the page is open; a thread waits for it, so that it leaves no zombie.
    std::thread::Builder::new().name("browser".to_owned()).spawn(move || child.wait())?;
    Ok(())
}

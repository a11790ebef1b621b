use trunkline_transport::process::{ServerProcess, StderrTail, StdoutNoise};

/// How many lines of standard error are in a message.
const MAX_STDERR_LINES: usize = 10;

/// Describes the output of a running server outside of the protocol, on lines of their own.
pub(super) fn describe(process: &ServerProcess) -> Option<String> {
    describe_output(&process.noise(), &process.stderr())
}

fn describe_output(noise: &StdoutNoise, stderr: &StderrTail) -> Option<String> {
    let mut text = String::new();
    if let Some(first) = &noise.first {
        text.push_str("its standard output is not the protocol; ");
        match noise.lines {
            1 => text.push_str("it printed:"),
            lines => text.push_str(&format!("the first of {lines} such lines:")),
        }
        text.push_str(&format!("\n  {first}"));
    }
    let lines = stderr.last_lines(MAX_STDERR_LINES);
    if !lines.is_empty() {
        text.push_str(if text.is_empty() { "" } else { "\n" });
        text.push_str("its standard error ended with:");
        lines.lines().for_each(|line| text.push_str(&format!("\n  {line}")));
    }
    Some(text).filter(|text| !text.is_empty())
}

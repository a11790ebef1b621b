use std::io::{self, Read as _, Write as _};
use std::thread::sleep;
use std::time::Duration;

use clap::{Arg, ArgMatches, Command, value_parser};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Commands that behave in a way that is hard to bear.
pub(crate) fn command() -> Command {
    let number = |id: &'static str| Arg::new(id).required(true).value_parser(value_parser!(u64));
    Command::new("debug")
        .about("Behaves in a way that is hard to bear")
        .subcommand_required(true)
        .subcommand(
            Command::new("slow")
                .about("Prints lines with a pause before each")
                .arg(number("lines"))
                .arg(number("pause_ms")),
        )
        .subcommand(Command::new("flood").about("Prints so many bytes").arg(number("bytes")))
        .subcommand(Command::new("wait").about("Never ends, nor does the child that it starts"))
        .subcommand(Command::new("fail").about("Fails with a code").arg(number("code")))
        .subcommand(Command::new("environment").about("Prints the names of its variables"))
        .subcommand(Command::new("read").about("Reads its input to the end, and says how much there was"))
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let Some((name, matches)) = matches.subcommand() else { return Ok(()) };
    let number = |id: &str| matches.get_one::<u64>(id).copied().unwrap_or_default();
    match name {
        "slow" => {
            for line in 1..=number("lines") {
                sleep(Duration::from_millis(number("pause_ms")));
                println!("line {line}");
            }
        }
        "flood" => flood(number("bytes"))?,
        "wait" => {
            println!("waiting");
            #[expect(clippy::disallowed_methods, reason = "this program is no part of ours")]
            let _child = std::process::Command::new("sleep").arg("100000").spawn()?;
            loop {
                sleep(Duration::from_secs(3600));
            }
        }
        "fail" => {
            println!("half of the work");
            eprintln!("the other half failed");
            #[expect(clippy::exit, reason = "the code is what the caller wants to see")]
            std::process::exit(i32::try_from(number("code")).unwrap_or(1));
        }
        "environment" => {
            for (name, _) in std::env::vars_os() {
                println!("{}", name.display());
            }
        }
        _ => {
            let mut input = Vec::new();
            io::stdin().read_to_end(&mut input)?;
            println!("{} bytes", input.len());
        }
    }
    Ok(())
}

fn flood(bytes: u64) -> io::Result<()> {
    let block = [b"0123456789abcde\n".as_slice(); 4096].concat();
    let (mut left, mut out) = (bytes, io::stdout().lock());
    while left > 0 {
        let now = usize::try_from(left).unwrap_or(block.len()).min(block.len());
        out.write_all(block.get(..now).unwrap_or_default())?;
        left -= now as u64;
    }
    Ok(())
}

//! A program that greets, and that is an MCP server by one line.
#![allow(clippy::print_stdout, reason = "this is a program for a terminal")]

use clap::Parser;

/// Greets people.
#[derive(Parser)]
#[command(name = "greet", version)]
enum Greet {
    /// Prints a greeting.
    Hello {
        /// The name to greet.
        name: String,
        /// How often.
        #[arg(long, default_value_t = 1)]
        times: u8,
    },
    /// Prints a farewell.
    Goodbye,
}

fn main() {
    match trunkline_commands::parse() {
        Greet::Hello { name, times } => (0..times).for_each(|_| println!("Hello {name}")),
        Greet::Goodbye => println!("Goodbye"),
    }
}

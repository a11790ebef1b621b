//! A tool with a parameter that the user fills in: the second example of the README.

use trunkline::prelude::*;

#[derive(Form)]
enum Seat {
    /// At the window
    Window,
    /// On the aisle
    Aisle,
}

/// Books a flight.
#[tool(destructive)]
async fn book(day: String, #[ask("Where would you like to sit on {day}?")] seat: Seat) -> String {
    match seat {
        Seat::Window => format!("Booked for {day}, at the window."),
        Seat::Aisle => format!("Booked for {day}, on the aisle."),
    }
}

#[tokio::main]
async fn main() -> trunkline::Result<()> {
    Ok(server().serve(stdio()).await?)
}

/// Makes the server.
pub(crate) fn server() -> Server {
    Server::new("flights").with(book)
}

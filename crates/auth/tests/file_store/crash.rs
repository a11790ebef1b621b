//! A process that is killed at any point leaves a store that opens, with the last login that it reported as saved.

use std::io::{BufRead as _, BufReader};
use std::time::Duration;

use trunkline_auth::token_store::{TokenGeneration, TokenStore as _};

use crate::child;
use crate::store::{create, key, open, tokens};

const KILLS: u64 = 25;

/// Logins that are never written again; they make the file large enough to be cut off in the middle of a write.
const OTHER_LOGINS: usize = 20;

/// Is the child process: saves ever higher numbers, and prints each that was saved.
#[tokio::test]
async fn child_that_saves_in_a_loop() {
    let Some(path) = child::store_path() else { return };
    let store = open(&path);
    let key = key("https://written");
    let stored = store.load(&key).await.unwrap();
    let mut generation = stored.as_ref().map_or(TokenGeneration::ABSENT, |stored| stored.generation);
    let mut number: u64 = stored.map_or(0, |stored| stored.tokens.access_token.expose().parse().unwrap());
    loop {
        number += 1;
        generation = store.save(&key, &tokens(&number.to_string()), generation).await.unwrap();
        println!("saved {number}");
    }
}

#[tokio::test]
async fn killed_writers_never_damage_the_store() {
    let (_folder, path) = create();
    let store = open(&path);
    for number in 0..OTHER_LOGINS {
        let key = key(&format!("https://other/{number}"));
        store.save(&key, &tokens("other"), TokenGeneration::ABSENT).await.unwrap();
    }
    let mut saved = 0;
    for round in 0..KILLS {
        let mut writer = child::start("crash::child_that_saves_in_a_loop", &path, &[]);
        let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        let number =
            |line: &str| line.split_once("saved ").and_then(|(_, number)| number.parse::<u64>().ok());
        let mut last = lines.by_ref().map_while(Result::ok).find_map(|line| number(&line)).unwrap();
        // Another point of a write in each round.
        std::thread::sleep(Duration::from_micros(round * 397 % 7_000));
        writer.kill().unwrap();
        last = lines.map_while(Result::ok).filter_map(|line| number(&line)).last().unwrap_or(last);
        writer.wait().unwrap();
        let store = open(&path);
        let stored = store.load(&key("https://written")).await.unwrap().unwrap();
        let number: u64 = stored.tokens.access_token.expose().parse().unwrap();
        // The write under way when it was killed counts or does not.
        assert!((last..=last + 1).contains(&number), "reported {last}, stored {number}");
        assert!(number > saved);
        saved = number;
        assert_eq!(store.list("u").await.unwrap().len(), OTHER_LOGINS + 1);
    }
}

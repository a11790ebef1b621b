//! `load auth`: what a valid access token costs, against the anonymous call.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, anyhow, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use clap::Args;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::json;

use crate::drive::{Plan, Window, drive_http};
use crate::servers::{Binaries, HttpServer, Kind, Launch};
use crate::statistics::Spread;
use crate::wire::{Era, Place, filler};

/// The most that a call with a token may cost, in calls without one.
const TARGET: f64 = 1.15;

/// How much is measured.
#[derive(Args)]
pub(crate) struct AuthArguments {
    /// How many rounds, each with one stretch of every server.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How long one stretch is, in milliseconds.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(100..))]
    milliseconds: u64,
    /// End with an error when the target is missed.
    #[arg(long)]
    enforce: bool,
}

/// Measures both servers in turn and prints the table.
pub(crate) fn run(binaries: &Binaries, arguments: &AuthArguments) -> Result<()> {
    ensure!(binaries.have_ours(), "our echo example is missing: {}", binaries.ours_path().display());
    let issuer = Issuer::start()?;
    let authorization: &'static str = Box::leak(format!("Bearer {}", issuer.token()?).into_boxed_str());
    let launch = Launch { issuer: Some(issuer.url()), ..Launch::default() };
    let anonymous = HttpServer::start(binaries, Kind::Ours, &Launch::default())?;
    let authorized = HttpServer::start(binaries, Kind::Ours, &launch)?;
    let measured = Duration::from_millis(arguments.milliseconds);
    let plan = Plan { warm_up: Duration::from_millis(150), measured };
    println!(
        "CPU of a call of 16 B with 32 connections, without a token and with a JWT of {} B.\n",
        authorization.len()
    );
    println!("| revision | anonymous | JWT | ratio (least–most) | target |");
    println!("|---|---|---|---|---|");
    let mut missed = Vec::new();
    for era in [Era::Legacy, Era::Modern] {
        let cost = |server: &HttpServer, authorization| -> Result<f64> {
            let place = Place { authorization, ..server.address().into() };
            let sample = drive_http(place, era, &filler(16), 32, Window::new(server.id(), plan))?;
            Ok(sample.cpu_microseconds())
        };
        let (mut plain, mut bearer) = (Vec::new(), Vec::new());
        for round in 0..arguments.rounds {
            // The order turns round each time, so that a drift of the machine favours none.
            if round % 2 == 0 {
                plain.push(cost(&anonymous, None)?);
            }
            bearer.push(cost(&authorized, Some(authorization))?);
            if round % 2 == 1 {
                plain.push(cost(&anonymous, None)?);
            }
        }
        let ratios = bearer.iter().zip(&plain).map(|(bearer, plain)| bearer / plain);
        let spread = |figures: Vec<f64>| Spread::of(figures).context("no round");
        let ratio = spread(ratios.collect())?;
        let (plain, bearer) = (spread(plain)?, spread(bearer)?);
        println!(
            "| {} | {:.2} µs | {:.2} µs | {:.2} ({:.2}–{:.2}) | {TARGET} |",
            era.revision(),
            plain.median,
            bearer.median,
            ratio.median,
            ratio.least,
            ratio.most,
        );
        if ratio.median > TARGET {
            missed.push(era.revision());
        }
    }
    anonymous.end()?;
    authorized.end()?;
    ensure!(!arguments.enforce || missed.is_empty(), "target missed: {}", missed.join(", "));
    Ok(())
}

/// An issuer with one key, which it serves.
struct Issuer {
    key: EcdsaKeyPair,
    port: u16,
}

impl Issuer {
    fn start() -> Result<Self> {
        let random = SystemRandom::new();
        let failed = |_| anyhow!("no key");
        let document =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).map_err(failed)?;
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random)
            .map_err(|error| anyhow!("no key: {error}"))?;
        // An uncompressed point: 4, x and y.
        let point = key.public_key().as_ref();
        let coordinate = |range| point.get(range).map(|bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes));
        let (x, y) = (coordinate(1..33).context("no x")?, coordinate(33..65).context("no y")?);
        let keys =
            json!({ "keys": [{ "kty": "EC", "crv": "P-256", "kid": "a", "x": x, "y": y }] }).to_string();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut received = [0; 4096];
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    keys.len()
                );
                // A request fits into one read here.
                let _ = stream
                    .read(&mut received)
                    .and_then(|_| stream.write_all(format!("{head}{keys}").as_bytes()));
            }
        });
        Ok(Self { key, port })
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Signs a token with the claims that authorization servers usually put into one.
    fn token(&self) -> Result<String> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
        let header = json!({ "alg": "ES256", "typ": "at+jwt", "kid": "a" });
        let claims = json!({
            "iss": self.url(), "sub": "3f1c5a6e-7f0b-4a4e-9d53-0a8c1d8a2b11", "aud": "https://echo.example/mcp",
            "iat": now, "exp": now + 3600, "jti": "b1f0c1b8-6d3e-4d3f-8a58-5a4b6b8f2c10",
            "client_id": "4a2d7a0e-1c55-4a3b-b0c8-6d9b4a0f7e21", "scope": "mcp:use files:read files:write",
            "preferred_username": "ann", "realm_access": { "roles": ["user", "offline_access"] },
        });
        let input = format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(header.to_string()),
            URL_SAFE_NO_PAD.encode(claims.to_string())
        );
        let signature =
            self.key.sign(&SystemRandom::new(), input.as_bytes()).map_err(|_| anyhow!("no signature"))?;
        Ok(format!("{input}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

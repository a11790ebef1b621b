//! An authorization server with one key, which it serves.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::time::SystemTime;

use anyhow::Result;
use ring::rand::SystemRandom;
use ring::signature::EcdsaKeyPair;
use serde_json::json;

use crate::wire::{coordinates, generate_key, sign, token_header};

/// The resource that tokens are for.
pub(crate) const RESOURCE: &str = "https://echo.example/mcp";

pub(crate) struct Issuer {
    key: EcdsaKeyPair,
    port: u16,
}

impl Issuer {
    /// Starts it at a free port.
    ///
    /// # Errors
    /// There is no key or no port.
    pub(crate) fn start() -> Result<Self> {
        let key = generate_key()?;
        let (x, y) = coordinates(&key)?;
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

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Signs a token with the claims that authorization servers usually put into one, bound to a key if there is one.
    ///
    /// # Errors
    /// There is no signature.
    pub(crate) fn token(&self, thumbprint: Option<&str>) -> Result<String> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
        let mut claims = json!({
            "iss": self.url(), "sub": "3f1c5a6e-7f0b-4a4e-9d53-0a8c1d8a2b11", "aud": RESOURCE,
            "iat": now, "exp": now + 3600, "jti": "b1f0c1b8-6d3e-4d3f-8a58-5a4b6b8f2c10",
            "client_id": "4a2d7a0e-1c55-4a3b-b0c8-6d9b4a0f7e21", "scope": "mcp:use files:read files:write",
            "preferred_username": "ann", "realm_access": { "roles": ["user", "offline_access"] },
        });
        if let (Some(thumbprint), Some(members)) = (thumbprint, claims.as_object_mut()) {
            members.insert("cnf".to_owned(), json!({ "jkt": thumbprint }));
        }
        sign(&self.key, &SystemRandom::new(), &token_header(), &claims.to_string())
    }
}

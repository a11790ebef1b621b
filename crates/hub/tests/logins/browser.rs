//! A browser of one user: keeps cookies, and follows what pages and authorization servers send.

use std::collections::BTreeMap;

use http::StatusCode;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[derive(Default)]
pub(crate) struct Browser {
    cookies: BTreeMap<String, String>,
}

pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) text: String,
    pub(crate) location: Option<String>,
}

impl Page {
    /// Returns the value of the hidden field of a consent page.
    pub(crate) fn form_key(&self) -> Option<&str> {
        self.text.split_once("name=\"form_key\" value=\"")?.1.split('"').next()
    }
}

impl Browser {
    /// Gives a browser the cookies of another, as a page of a neighbouring host can: without the prefix `__Host-`, which
    /// only the host itself can set.
    pub(crate) fn planted_from(other: &Self) -> Self {
        let planted = |(name, value): (&String, &String)| {
            (name.strip_prefix("__Host-").unwrap_or(name).to_owned(), value.clone())
        };
        Self { cookies: other.cookies.iter().map(planted).collect() }
    }

    /// Returns the names of its cookies.
    pub(crate) fn cookie_names(&self) -> Vec<&str> {
        self.cookies.keys().map(String::as_str).collect()
    }

    pub(crate) async fn get(&mut self, url: &str) -> Page {
        self.request("GET", url, "").await
    }

    pub(crate) async fn post(&mut self, url: &str, form: String) -> Page {
        self.request("POST", url, &form).await
    }

    async fn request(&mut self, method: &str, url: &str, body: &str) -> Page {
        let (address, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let cookies: Vec<_> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut headers =
            format!("Host: {address}\r\nConnection: close\r\nCookie: {}\r\n", cookies.join("; "));
        if method == "POST" {
            let length = body.len();
            headers += &format!(
                "Origin: http://{address}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n"
            );
        }
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream
            .write_all(format!("{method} /{path} HTTP/1.1\r\n{headers}\r\n{body}").as_bytes())
            .await
            .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        let (head, text) = response.split_once("\r\n\r\n").unwrap();
        let header = |name: &'static str| {
            let of = move |line: &str| {
                let (known, value) = line.split_once(':')?;
                known.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            };
            head.lines().filter_map(of).collect::<Vec<_>>()
        };
        for cookie in header("set-cookie") {
            let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Page { status, text: text.to_owned(), location: header("location").pop() }
    }

    /// Consents to a login and logs in as a user of the authorization server.
    pub(crate) async fn consent(&mut self, link: &str, page: Page, user: &str) -> Page {
        let Some(form_key) = page.form_key() else { return page };
        let sent = self.post(link, format!("form_key={form_key}")).await;
        let Some(location) = sent.location else { return sent };
        let redirect = self.get(&format!("{location}&as_user={user}")).await;
        self.get(&redirect.location.unwrap()).await
    }

    /// Opens a link on this machine, and logs in.
    pub(crate) async fn log_in(&mut self, link: &str, user: &str) -> Page {
        let page = self.get(link).await;
        self.consent(link, page, user).await
    }

    /// Opens a link, and signs in as a user of the hub's identity provider, up to the page after that.
    pub(crate) async fn sign_in(&mut self, link: &str, user: &str) -> Page {
        let sent = self.get(link).await;
        let Some(location) = sent.location else { return sent };
        let signed_in = self.get(&format!("{location}&as_user={user}")).await;
        let back = self.get(&signed_in.location.unwrap()).await;
        match back.location.clone() {
            Some(location) => self.get(&location).await,
            None => back,
        }
    }

    /// Opens a link, proves to be a user of the hub, and logs in.
    pub(crate) async fn log_in_with(&mut self, link: &str, token: &str, user: &str) -> Page {
        let asked = self.get(link).await;
        assert!(asked.text.contains("name=\"token\""), "{}", asked.text);
        let page = self.post(link, format!("token={token}")).await;
        self.consent(link, page, user).await
    }
}

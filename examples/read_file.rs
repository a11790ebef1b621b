//! Reads text files of one folder, and nothing outside of it.
//!
//! `cargo run --example read_file -- FOLDER` serves the files of a folder, or else of the current one. A client with
//! roots reads those of its roots that lie in the folder. `FILE_ENCODING=utf-16le` reads files of that encoding; UTF-8
//! unless set.

use std::path::PathBuf;

use trunkline::prelude::*;
use trunkline::{EnvPolicy, HostOptions, Sandbox};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Wanted {
    /// The file, absolute, or relative to the first root or the folder.
    path: String,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct File {
    path: String,
    content: String,
    encoding: Encoding,
}

#[derive(Clone, Copy, serde::Serialize, schemars::JsonSchema)]
enum Encoding {
    Utf8,
    Utf16Le,
    Utf16Be,
}

impl Encoding {
    fn named(name: &str) -> Result<Self, ToolError> {
        match name.to_ascii_lowercase().as_str() {
            "" | "utf-8" | "utf8" => Ok(Self::Utf8),
            "utf-16le" => Ok(Self::Utf16Le),
            "utf-16be" => Ok(Self::Utf16Be),
            _ => Err(ToolError::new("FILE_ENCODING is none of utf-8, utf-16le and utf-16be")),
        }
    }

    fn decode(self, bytes: Vec<u8>) -> Result<String, ToolError> {
        let unit = match self {
            Self::Utf8 => return Ok(String::from_utf8(bytes)?),
            Self::Utf16Le => u16::from_le_bytes,
            Self::Utf16Be => u16::from_be_bytes,
        };
        let (units, rest) = bytes.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(ToolError::new("the file is not UTF-16: it has an odd number of bytes"));
        }
        let text = String::from_utf16(&units.iter().map(|pair| unit(*pair)).collect::<Vec<_>>())?;
        Ok(text.trim_start_matches('\u{feff}').to_owned())
    }
}

async fn read(cx: Context, sandbox: Sandbox, wanted: Wanted) -> Result<Json<File>, ToolError> {
    let encoding = cx.env("FILE_ENCODING");
    let encoding = Encoding::named(encoding.as_ref().map_or("", |name| name.expose()))?;
    let bytes = sandbox.read(&cx, &wanted.path).await?;
    Ok(Json(File { path: wanted.path, content: encoding.decode(bytes)?, encoding }))
}

/// Makes the server of a folder.
pub(crate) fn server(folder: PathBuf) -> Server {
    // The folder is the operator's choice: the roots of a client would give it whatever it names. The sandbox opens
    // files by walking from the folder, so that no link or `..` leads out of it.
    let sandbox = Sandbox::within([folder]);
    let read = move |cx: Context, wanted: Wanted| read(cx, sandbox.clone(), wanted);
    Server::new("files").with(Tool::new("read_file").description("Reads a file of the folder.").run(read))
}

/// Names the variables that it may see.
pub(crate) fn options() -> HostOptions {
    let names = vec!["FILE_ENCODING".to_owned()];
    let env = EnvPolicy { from_process: names.clone(), from_headers: names };
    HostOptions { env, ..HostOptions::default() }
}

#[tokio::main]
async fn main() -> trunkline::Result<()> {
    let folder = std::env::args_os().nth(1).map_or_else(std::env::current_dir, |folder| Ok(folder.into()))?;
    Ok(stdio().serve(server(folder.canonicalize()?).host(options())?).await?)
}

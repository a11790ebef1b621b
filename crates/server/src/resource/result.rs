use bytes::Bytes;
use serde::Serialize;
use trunkline_protocol::Refusal;
use trunkline_protocol::model::{CacheHint, ReadResourceResult, ResourceContents};

use crate::error::ToolError;
use crate::json::Json;

/// The properties of a resource before it is read.
#[derive(Clone, Debug)]
pub struct ReadRequest {
    /// The requested URI.
    pub uri: String,
    /// The media type in the description of the resource or template.
    pub mime_type: Option<String>,
    /// How long the content may be cached.
    pub cache: CacheHint,
}

impl ReadRequest {
    fn result(self, contents: ResourceContents) -> ReadResourceResult {
        let mime_type = contents.mime_type.clone().or(self.mime_type);
        ReadResourceResult {
            cache: self.cache,
            ..ReadResourceResult::new(vec![ResourceContents { mime_type, ..contents }])
        }
    }
}

/// What a resource's handler may return.
///
/// Text is text, bytes are a blob, [`Json`] is text of type `application/json`, and nothing at all is "not found".
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not something that a resource can return",
    note = "wrap serializable values in `Json`"
)]
pub trait IntoReadResult {
    /// Makes the result.
    ///
    /// # Errors
    /// The refusal that the caller gets instead.
    fn into_read_result(self, request: ReadRequest) -> Result<ReadResourceResult, Refusal>;
}

impl IntoReadResult for ReadResourceResult {
    fn into_read_result(self, _: ReadRequest) -> Result<ReadResourceResult, Refusal> {
        Ok(self)
    }
}

impl IntoReadResult for Vec<ResourceContents> {
    fn into_read_result(self, request: ReadRequest) -> Result<ReadResourceResult, Refusal> {
        Ok(ReadResourceResult { cache: request.cache, ..ReadResourceResult::new(self) })
    }
}

impl IntoReadResult for ResourceContents {
    fn into_read_result(self, request: ReadRequest) -> Result<ReadResourceResult, Refusal> {
        vec![self].into_read_result(request)
    }
}

impl IntoReadResult for String {
    fn into_read_result(self, request: ReadRequest) -> Result<ReadResourceResult, Refusal> {
        let contents = ResourceContents::text(request.uri.clone(), self);
        Ok(request.result(contents))
    }
}

impl IntoReadResult for &'static str {
    fn into_read_result(self, request: ReadRequest) -> Result<ReadResourceResult, Refusal> {
        self.to_owned().into_read_result(request)
    }
}

impl IntoReadResult for Vec<u8> {
    fn into_read_result(self, request: ReadRequest) -> Result<ReadResourceResult, Refusal> {
        let contents = ResourceContents::blob(request.uri.clone(), &self);
        Ok(request.result(contents))
    }
}

impl IntoReadResult for Bytes {
    fn into_read_result(self, request: ReadRequest) -> Result<ReadResourceResult, Refusal> {
        let contents = ResourceContents::blob(request.uri.clone(), &self);
        Ok(request.result(contents))
    }
}

impl<T: Serialize> IntoReadResult for Json<T> {
    fn into_read_result(self, mut request: ReadRequest) -> Result<ReadResourceResult, Refusal> {
        request.mime_type.get_or_insert_with(|| "application/json".to_owned());
        let contents = ResourceContents::text(request.uri.clone(), self.to_raw()?.as_str());
        Ok(request.result(contents))
    }
}

impl<R: IntoReadResult> IntoReadResult for Option<R> {
    fn into_read_result(self, request: ReadRequest) -> Result<ReadResourceResult, Refusal> {
        match self {
            Some(read) => read.into_read_result(request),
            None => Err(Refusal::resource_not_found(&request.uri)),
        }
    }
}

impl<R: IntoReadResult, E: Into<ToolError>> IntoReadResult for Result<R, E> {
    fn into_read_result(self, request: ReadRequest) -> Result<ReadResourceResult, Refusal> {
        match self {
            Ok(read) => read.into_read_result(request),
            Err(error) => Err(error.into().into_refusal()),
        }
    }
}

/// Makes the result of a read; one without contents would claim that there is a resource where there is none.
pub(super) fn finish(read: impl IntoReadResult, request: ReadRequest) -> Result<ReadResourceResult, Refusal> {
    let uri = request.uri.clone();
    let mut result = read.into_read_result(request)?;
    if result.contents.is_empty() {
        return Err(Refusal::resource_not_found(&uri));
    }
    for contents in result.contents.iter_mut().filter(|contents| contents.uri.is_empty()) {
        contents.uri.clone_from(&uri);
    }
    Ok(result)
}

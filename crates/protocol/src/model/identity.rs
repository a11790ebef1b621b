object! {
    /// What a client or server calls itself.
    #[derive(Default)]
    struct Implementation {
        /// The name that programs use.
        name: String => "name",
        /// The version, in any form.
        version: String => "version",
        /// The name that humans see.
        title: Option<String> => "title" if title,
        /// What it is for.
        description: Option<String> => "description" if implementation_details,
        /// Where to read more.
        website_url: Option<String> => "websiteUrl" if implementation_details,
        /// Pictures of it.
        icons: Vec<Icon> => "icons" if icons,
    }
}

impl Implementation {
    /// Names an implementation and its version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), ..Self::default() }
    }
}

object! {
    /// An icon of an entity or an implementation.
    #[derive(Default)]
    struct Icon {
        /// The picture's URL, or the picture itself as a `data:` URL.
        src: String => "src",
        /// The media type, if the URL does not determine it.
        mime_type: Option<String> => "mimeType",
        /// The sizes that it is good for, such as `48x48` or `any`.
        sizes: Vec<String> => "sizes",
        /// The background it is drawn for: `light` or `dark`.
        theme: Option<String> => "theme",
    }
}

impl Icon {
    /// Names a picture by its URL.
    pub fn new(src: impl Into<String>) -> Self {
        Self { src: src.into(), ..Self::default() }
    }
}

object! {
    /// The name and version of a client or server.
    #[derive(Default)]
    struct Implementation {
        /// The programmatic name.
        name: String => "name",
        /// The version, in any form.
        version: String => "version",
        /// The display name.
        title: Option<String> => "title" if title,
        /// What it is for.
        description: Option<String> => "description" if implementation_details,
        /// The website.
        website_url: Option<String> => "websiteUrl" if implementation_details,
        /// The icons.
        icons: Vec<Icon> => "icons" if icons,
    }
}

impl Implementation {
    /// Creates an implementation from its name and version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), ..Self::default() }
    }
}

object! {
    /// An icon of an entity or an implementation.
    #[derive(Default)]
    struct Icon {
        /// The image's URL, or the image itself as a `data:` URL.
        src: String => "src",
        /// The media type, if the URL does not determine it.
        mime_type: Option<String> => "mimeType",
        /// The supported sizes, such as `48x48` or `any`.
        sizes: Vec<String> => "sizes",
        /// The background it is drawn for: `light` or `dark`.
        theme: Option<String> => "theme",
    }
}

impl Icon {
    /// Creates an icon from its URL.
    pub fn new(src: impl Into<String>) -> Self {
        Self { src: src.into(), ..Self::default() }
    }
}

//! The async functions that authors write, with or without a context and arguments.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::call::Context;

/// An async function that a tool, a prompt or a resource runs.
///
/// It takes nothing, the [`Context`], its arguments, or the context and then its arguments. `Shape` distinguishes the
/// four and is always inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler",
    note = "a handler is an async function of (), (Context), (Arguments) or (Context, Arguments), its arguments implement \
            `Deserialize`, and its future is `Send`"
)]
pub trait HandlerFn<Shape>: Send + Sync + 'static {
    /// Its arguments, besides the context.
    type Arguments: DeserializeOwned + Send + 'static;
    /// What it returns.
    type Output;
    /// The future that runs it.
    type Future: Future<Output = Self::Output> + Send + 'static;

    /// Starts it.
    fn invoke(&self, context: Context, arguments: Self::Arguments) -> Self::Future;
}

/// The four shapes of a [`HandlerFn`].
pub mod shape {
    use std::marker::PhantomData;

    /// `async fn()`
    #[derive(Debug)]
    pub enum NoParameters {}

    /// `async fn(Context)`
    #[derive(Debug)]
    pub enum OnlyContext {}

    /// `async fn(Arguments)`
    #[derive(Debug)]
    pub struct OnlyArguments<A>(PhantomData<A>);

    /// `async fn(Context, Arguments)`
    #[derive(Debug)]
    pub struct ContextAndArguments<A>(PhantomData<A>);
}

impl<F, Fut> HandlerFn<shape::NoParameters> for F
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
{
    type Arguments = NoArguments;
    type Output = Fut::Output;
    type Future = Fut;

    fn invoke(&self, _: Context, _: NoArguments) -> Fut {
        self()
    }
}

impl<F, Fut> HandlerFn<shape::OnlyContext> for F
where
    F: Fn(Context) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
{
    type Arguments = NoArguments;
    type Output = Fut::Output;
    type Future = Fut;

    fn invoke(&self, context: Context, _: NoArguments) -> Fut {
        self(context)
    }
}

impl<F, A, Fut> HandlerFn<shape::OnlyArguments<A>> for F
where
    F: Fn(A) -> Fut + Send + Sync + 'static,
    A: DeserializeOwned + Send + 'static,
    Fut: Future + Send + 'static,
{
    type Arguments = A;
    type Output = Fut::Output;
    type Future = Fut;

    fn invoke(&self, _: Context, arguments: A) -> Fut {
        self(arguments)
    }
}

impl<F, A, Fut> HandlerFn<shape::ContextAndArguments<A>> for F
where
    F: Fn(Context, A) -> Fut + Send + Sync + 'static,
    A: DeserializeOwned + Send + 'static,
    Fut: Future + Send + 'static,
{
    type Arguments = A;
    type Output = Fut::Output;
    type Future = Fut;

    fn invoke(&self, context: Context, arguments: A) -> Fut {
        self(context, arguments)
    }
}

/// The arguments of a function that takes none.
///
/// It reads from any object; it is the tool's schema that refuses unknown arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoArguments;

impl<'de> Deserialize<'de> for NoArguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyObjectVisitor;

        impl<'de> Visitor<'de> for AnyObjectVisitor {
            type Value = NoArguments;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NoArguments, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(NoArguments)
            }
        }

        deserializer.deserialize_map(AnyObjectVisitor)
    }
}

impl JsonSchema for NoArguments {
    fn schema_name() -> Cow<'static, str> {
        "NoArguments".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "additionalProperties": false })
    }
}

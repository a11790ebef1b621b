use std::fmt::Display;

use proc_macro2::TokenStream;
use quote::ToTokens;

/// Errors found so far; all of them are reported at once.
#[derive(Default)]
pub(crate) struct MacroErrors(Option<syn::Error>);

impl MacroErrors {
    /// Adds an error at its tokens, with a hint on how to fix it.
    pub(crate) fn add(&mut self, tokens: impl ToTokens, message: impl Display) {
        self.push(syn::Error::new_spanned(tokens, message));
    }

    pub(crate) fn push(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// Returns the value of a result, or records its error.
    pub(crate) fn capture<T>(&mut self, attempt: syn::Result<T>) -> Option<T> {
        attempt.map_err(|error| self.push(error)).ok()
    }

    /// Returns the errors as one, if there are any.
    pub(crate) fn into_error(self) -> Option<syn::Error> {
        self.0
    }

    /// Returns the `compile_error!` tokens, if there are any errors.
    pub(crate) fn into_compile_errors(self) -> Option<TokenStream> {
        self.0.map(|errors| errors.to_compile_error())
    }
}

use std::fmt::Display;

use proc_macro2::TokenStream;
use quote::ToTokens;

/// Mistakes found so far; all of them are told at once.
#[derive(Default)]
pub(crate) struct MacroErrors(Option<syn::Error>);

impl MacroErrors {
    /// Adds a mistake at its place, with what to do about it.
    pub(crate) fn add(&mut self, place: impl ToTokens, message: impl Display) {
        self.push(syn::Error::new_spanned(place, message));
    }

    pub(crate) fn push(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// Returns the value of an attempt, or notes why there is none.
    pub(crate) fn capture<T>(&mut self, attempt: syn::Result<T>) -> Option<T> {
        attempt.map_err(|error| self.push(error)).ok()
    }

    /// Returns the mistakes as one error, if there are any.
    pub(crate) fn into_error(self) -> Option<syn::Error> {
        self.0
    }

    /// Returns what makes the compiler tell the mistakes, if there are any.
    pub(crate) fn into_compile_errors(self) -> Option<TokenStream> {
        self.0.map(|errors| errors.to_compile_error())
    }
}

//! What an author is told about a mistake: each file under `ui` has some, and beside it is what the compiler says.

#[test]
fn every_macro_error_has_its_span_and_a_hint() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

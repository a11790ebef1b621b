//! The compile errors of misused attributes: each file under `ui` has some, with the expected output next to it.

#[test]
fn every_macro_error_has_its_span_and_a_hint() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

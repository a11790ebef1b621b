//! What an author is told about a mistake: each file under `ui` has some, and beside it is what the compiler says.

#[test]
fn every_mistake_is_told_where_it_is_and_with_what_to_do() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

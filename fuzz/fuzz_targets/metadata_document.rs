//! Runs `metadata_document` under the fuzzer, or over the files named on the command line.
#![cfg_attr(fuzzing, no_main)]

trunkline_fuzz::target!(trunkline_fuzz::metadata_document);

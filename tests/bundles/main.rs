//! Properties of all bundles, valid or not, and of all their readers.

mod bounds;
mod costs;
mod differential;
mod flips;
mod fuzz_corpus;
mod hostile;
mod properties;
mod reference;

//! What holds for any bundle, good or bad, and of all who read it.

mod bounds;
mod costs;
mod flips;
mod fuzz_corpus;
mod hostile;
mod properties;
mod reference;

//! What the sources themselves must hold to: modules form layers, and the library exports every type of its signatures.

mod face;
mod layers;

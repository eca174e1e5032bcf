//! An argument that is one of a few words.

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Returns the parser of an argument that is one of these words, each with its value.
pub(crate) fn one_of<T, const N: usize>(words: [(&'static str, T); N]) -> impl TypedValueParser<Value = T>
where
    T: Clone + Send + Sync + 'static,
{
    let parser = PossibleValuesParser::new(words.iter().map(|(word, _)| *word).collect::<Vec<_>>());
    parser.try_map(move |chosen| {
        let known = words.iter().find(|(word, _)| *word == chosen);
        known.map(|(_, value)| value.clone()).ok_or("it is none of the words")
    })
}

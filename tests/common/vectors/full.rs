//! The bundle that a delta bundle stands for (spec 4.7 and 7.6).

use super::*;
use crate::bundle::Contents;
use crate::bytes::Section;
use crate::delta::Delta;
use crate::full::Full;

use super::delta::{accept_delta, base, of_two_bases, whole, whole_of_two_bases};

pub(super) fn vectors() -> Vec<Vector> {
    [good(), root(), layout()].into_iter().flatten().collect()
}

fn good() -> Vec<Vector> {
    let mut delta = of_two_bases();
    let mut full = whole_of_two_bases();
    full.area_len = 512;
    full.layout.landmark = Some(1);
    delta.stand_for(full);
    let own = of(&mut delta);
    own.envelopes = vec![(1, b"a signature that nobody looks at".to_vec()), (700, b"later".to_vec())];
    own.layouts[1] = [7; 32];
    vec![accept_delta(
        "good-delta-full",
        "it stands for a bundle with a group, pieces, a hole and a landmark",
        delta,
        vec![("good-base", base()), ("good-two-refs", good::two_refs())],
    )]
}

/// A delta bundle that stands for the bundle of all of its objects.
fn standing() -> Bundle {
    let mut delta = delta::delta();
    delta.stand_for(whole());
    delta
}

fn of(bundle: &mut Bundle) -> &mut Full {
    let Delta { full: Some(full), .. } = bundle.delta() else { panic!("it stands for no bundle") };
    full
}

/// With one thing wrong in what it says of the full bundle.
fn reject(name: &str, kind: &str, comment: &str, change: impl FnOnce(&mut Full)) -> Vector {
    reject_from(standing(), name, kind, comment, |b| change(of(b)))
}

/// Standing for a bundle that it cannot stand for.
fn reject_for(full: Bundle, name: &str, comment: &str) -> Vector {
    reject_from(delta::delta(), name, "header", comment, |b| b.stand_for(full))
}

fn root() -> Vec<Vector> {
    let mut longer = whole();
    longer.edits.contents = edit(|contents: &mut Contents| contents.index_len += 1);
    let mut without_maxima = whole();
    without_maxima.edits.root = edit(|s: &mut Vec<Section>| drop(s.remove(2)));
    let payload = |name, comment, change: fn(&mut Vec<u8>)| {
        reject_from(standing(), name, "header", comment, |b| {
            b.edits.root = edit(move |s: &mut Vec<Section>| change(&mut s[4].payload));
        })
    };
    vec![
        reject_from(small(), "full-without-bases", "header", "a bundle that is no delta stands for itself", |b| {
            b.edits.root = edit(|s: &mut Vec<Section>| s.push(Full::of(small(), 0).root_section()));
        }),
        reject("full-level", "header", "level 23", |full| full.level = 23),
        reject("full-encoder", "header", "the encoder's name is not UTF-8", |full| full.encoder = vec![0xff]),
        reject("full-envelopes-order", "header", "two envelopes descend", |full| {
            full.envelopes = vec![(701, Vec::new()), (700, Vec::new())];
        }),
        reject("full-envelopes-long", "header", "an envelope leaves no room for the area's BLAKE3", |full| {
            full.envelopes = vec![(700, vec![0; 32])];
        }),
        reject("full-magic", "header", "the full bundle's magic is another", |full| full.signed[0] = 0x88),
        reject_for(without_maxima, "full-root", "the full bundle's root has no maxima"),
        reject_for(delta::delta(), "full-of-delta", "the full bundle is a delta bundle"),
        reject_for(base(), "full-other-index", "the full bundle is the base"),
        reject_for(longer, "full-index-len", "the full bundle's index_len is a byte more"),
        payload("full-cut", "the last byte of the full bundle is missing", |payload| {
            payload.truncate(payload.len() - 1);
        }),
        payload("full-left", "a byte follows the full bundle", |payload| payload.push(0)),
    ]
}

fn layout() -> Vec<Vector> {
    let payload = |name, comment, change: fn(&mut Vec<u8>)| {
        reject_from(standing(), name, "layout", comment, |b| {
            b.edits.layout = edit(move |s: &mut Vec<Section>| change(&mut s[4].payload));
        })
    };
    vec![
        reject_from(standing(), "full-layout-missing", "layout", "the root alone names the full bundle", |b| {
            b.edits.layout = edit(|s: &mut Vec<Section>| drop(s.pop()));
        }),
        reject_from(standing(), "full-layout-left", "layout", "the root does not name the full bundle", |b| {
            b.edits.root = edit(|s: &mut Vec<Section>| drop(s.pop()));
        }),
        reject("full-layout-chunks", "layout", "a chunk more than the full bundle's root says", |full| {
            full.objects.push(0);
        }),
        reject("full-layout-landmark", "layout", "a landmark behind the last chunk", |full| full.landmark = 3),
        payload("full-layout-cut", "the landmark has three bytes", |payload| payload.truncate(payload.len() - 1)),
        payload("full-layout-bytes-left", "a byte follows the landmark", |payload| payload.push(0)),
    ]
}

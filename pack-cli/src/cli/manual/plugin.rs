//! The man page of the nbdkit plugin, which is not a verb: its parameters, and how to use it.

use clap_mangen::roff::{Inline, Roff, bold, italic, roman};

use super::notes;

/// The name of the page.
pub(super) const NAME: &str = "nbdkit-sealift-plugin";

const ABOUT: &str = "serve an image in a Sealift bundle";

const DESCRIPTION: &[&str] = &[
    "This plugin of nbdkit(1) serves one file of a bundle, such as the image of a disk, as a network block device. Nothing is unpacked: \
     the plugin decodes only the chunks that are needed, and compares each with its digest before it returns a byte of it.",
    "The bundle is judged once, before nbdkit starts serving, as by sealift-mount(1): if it is not trusted, nbdkit exits with an error message. \
     Reading a damaged part of the image fails with an I/O error (EIO), and the plugin logs the chunk and its offset once. If the medium is \
     pulled out, reads from it fail until it is back. The plugin keeps serving the bundle that it opened, even if another one takes its name.",
    "The export is read-only; nbdkit-cow-filter(1) makes it writable without changing the bundle. Clients may read over several \
     connections at once. Holes of the image are reported as such.",
];

/// Each parameter with its value and its meaning, in the order of `nbdkit sealift --help`.
const PARAMETERS: &[(&str, &str, &str)] = &[
    (
        "file=",
        "BUNDLE",
        "The bundle; file= may be omitted. If several are given, the last is served, and the others are its bases.",
    ),
    (
        "path=",
        "[REF:]PATH",
        "The file in the bundle to serve. Not needed if the bundle has only one, as a bundle packed from an image does; equal files \
         count as one.",
    ),
    (
        "base=",
        "BUNDLE|TARGET",
        "Read a delta over its base: a bundle, or what it was unpacked to; repeat for each of its bases.",
    ),
    ("cache=", "SIZE", "Memory for decoded content, such as 256M. The default is 64M."),
    ("jobs=", "N", "Number of threads that read and decode. The default is the available CPUs."),
    (
        "trust=",
        "FILE",
        "Allowed signers file, as for ssh-keygen and git. The default is /etc/sealift/allowed_signers, or the user's own.",
    ),
    ("revoked=", "FILE", "Revoked keys: a list made by ssh-keygen -k, or one public key per line."),
    (
        "threshold=",
        "[NAME=]N",
        "Require signatures by N trusted keys; NAME=N applies to bundles named NAME. Repeatable.",
    ),
    ("state=", "DIR", "Directory that records the highest version installed, which is only read."),
    ("time=", "TIME", "Check keys and expiry as of this time, such as 2027-01-31."),
    ("compatible=", "TAG", "A tag of this device, for bundles restricted to certain devices. Repeatable."),
    ("allow-unsigned=", "BOOL", "Accept a bundle that no trusted key signed; all other checks remain."),
    ("allow-downgrade=", "BOOL", "Accept a bundle older than the version installed on this device."),
];

const EXAMPLES: &[(&str, &str)] = &[
    ("Serve a disk image to this machine:", "nbdkit --unix /run/disk.sock sealift disk.sealift"),
    ("Copy it to a file with libnbd:", "nbdkit --unix - sealift disk.sealift --run 'nbdcopy \"$uri\" disk.img'"),
    (
        "Serve it writable, and discard the changes afterwards:",
        "nbdkit --unix /run/disk.sock --filter=cow sealift disk.sealift",
    ),
    (
        "Serve one of several files, from a delta over its base:",
        "nbdkit sealift os-7.sealift os-7-to-8.sealift path=images/root.img",
    ),
];

const FILES: &[(&str, &str)] = &[
    ("$plugindir/nbdkit-sealift-plugin.so", "The plugin. nbdkit --dump-config prints $plugindir."),
    ("/etc/sealift/", "The trusted keys and the rest of the policy; see sealift-mount(1)."),
];

/// Returns the page.
pub(super) fn page(date: &str) -> String {
    let mut roff = Roff::new();
    let source = concat!("sealift ", env!("CARGO_PKG_VERSION"));
    roff.control("TH", [&NAME.to_uppercase(), "1", date, source, "Sealift"]);
    roff.control("SH", ["NAME"]).text([roman(format!("{NAME} - {ABOUT}"))]);
    roff.control("SH", ["SYNOPSIS"]);
    let file = [bold("nbdkit sealift"), roman(" [file=]"), italic("BUNDLE"), roman("... [path=["), italic("REF")];
    let rest =
        [roman(":]"), italic("PATH"), roman("] ["), italic("PARAMETER"), roman("="), italic("VALUE"), roman("]...")];
    roff.text(file.into_iter().chain(rest).collect::<Vec<Inline>>());
    roff.control("SH", ["DESCRIPTION"]);
    for (number, paragraph) in DESCRIPTION.iter().enumerate() {
        if number > 0 {
            roff.control("PP", []);
        }
        roff.text([roman(*paragraph)]);
    }
    roff.control("SH", ["PARAMETERS"]);
    for (name, value, meaning) in PARAMETERS {
        roff.control("TP", []).text([bold(*name), italic(*value)]).text([roman(*meaning)]);
    }
    roff.control("SH", ["EXAMPLES"]);
    for (number, (what, line)) in EXAMPLES.iter().enumerate() {
        if number > 0 {
            roff.control("PP", []);
        }
        roff.text([roman(*what)]).control("PP", []).control("RS", ["4"]).control("EX", []);
        roff.text([roman(*line)]).control("EE", []).control("RE", []);
    }
    let home = notes::ENVIRONMENT.iter().filter(|note| note.of == notes::OF_TRUST || note.of == ["state"]);
    roff.control("SH", ["ENVIRONMENT"]);
    for note in home {
        roff.control("TP", []).text([bold(note.name)]).text([roman(note.text)]);
    }
    roff.control("SH", ["FILES"]);
    for (name, text) in FILES {
        roff.control("TP", []).text([bold(*name)]).text([roman(*text)]);
    }
    roff.control("SH", ["SEE ALSO"]).text([
        bold("nbdkit"),
        roman("(1), "),
        bold("nbdkit-cow-filter"),
        roman("(1), "),
        bold("nbdfuse"),
        roman("(1), "),
        bold("sealift-mount"),
        roman("(1)"),
    ]);
    roff.to_roff()
}

//! What is refused.

use sealift_desk::noise;

use crate::scattered::{pack, refused, scattered};

#[test]
fn wrong_arguments_are_refused() {
    let desk = scattered();
    let simulate = "simulate plain.sealift --profile profile --device";
    refused(&desk, &format!("{simulate} tape"), 2, "possible values: dvd, cd, hdd, usb2, sdcard");
    refused(&desk, "simulate plain.sealift --profile nowhere --device dvd", 2, "cannot read nowhere");
    refused(&desk, &format!("{simulate} dvd --set speed=3"), 2, "no parameter speed");
    refused(&desk, &format!("{simulate} dvd --set turn_ms=fast"), 2, "fast is not a number");
    let range = "it must be from 0 to 9007199254740992, in ms";
    refused(&desk, &format!("{simulate} dvd --set turn_ms=NaN"), 2, &format!("turn_ms cannot be NaN: {range}"));
    let range = "it must be from 1 to 9007199254740992, in bytes";
    refused(&desk, &format!("{simulate} dvd --set block_bytes=1e16"), 2, range);
    let len = std::fs::metadata(desk.path("plain.sealift")).unwrap().len();
    let why = format!("the bundle, {len} bytes, does not fit on a device");
    refused(&desk, &format!("{simulate} dvd --set capacity_bytes=1000"), 2, &why);
    desk.write("page.html", "mine");
    refused(&desk, &format!("{simulate} dvd --svg page.html"), 2, "page.html");
    assert_eq!(desk.read("page.html"), b"mine");
    desk.good(&format!("{simulate} dvd --svg page.html --force"));
    desk.write("junk", noise(1, 200_000));
    refused(&desk, "simulate plain.sealift --profile junk --device dvd", 2, "junk: line 1: ");
    desk.write("above", "dir00/file0000\n../../etc/passwd\n");
    refused(&desk, "simulate plain.sealift --profile above --device dvd", 2, "above: line 2: ");
    desk.write("junk.sealift", noise(1, 5000));
    refused(&desk, "simulate junk.sealift --profile profile --device dvd", 1, "junk.sealift");
}

#[test]
fn a_delta_needs_its_base() {
    let desk = scattered();
    desk.make_key("release");
    pack(&desk, "plain.sealift", "--chunk-size 64KiB --key release --force");
    desk.write("tree/dir00/file0000", noise(7777, 20_000));
    pack(&desk, "delta.sealift", "--base plain.sealift --trust signers");
    let simulate = "simulate delta.sealift --profile profile --device dvd";
    refused(&desk, simulate, 4, "delta");
    refused(&desk, "simulate plain.sealift --profile profile --device dvd --base ordered.sealift", 2, "base");
    desk.good("pack tree -o other.sealift --name app --bundle-version 9 --allow-unsigned");
    let line = format!("{simulate} --base other.sealift");
    let said = desk.refused(&line, 4, "delta.sealift: wrong base: this delta needs os version 1 (");
    assert!(said.contains("; other.sealift: it has app version 9 ("), "{said}");
}

//! What is refused.

use crate::desk::{Desk, noise};

#[test]
fn wrong_arguments_are_refused() {
    let desk = Desk::scattered();
    let simulate = "simulate plain.sealift --profile profile --device";
    desk.refused(&format!("{simulate} tape"), 2, "possible values: dvd, cd, hdd, usb2, sdcard");
    desk.refused("simulate plain.sealift --profile nowhere --device dvd", 2, "cannot read nowhere");
    desk.refused(&format!("{simulate} dvd --set speed=3"), 2, "no parameter speed");
    desk.refused(&format!("{simulate} dvd --set turn_ms=fast"), 2, "fast is not a number");
    let range = "it must be from 0 to 9007199254740992, in ms";
    desk.refused(&format!("{simulate} dvd --set turn_ms=NaN"), 2, &format!("turn_ms cannot be NaN: {range}"));
    let range = "it must be from 1 to 9007199254740992, in bytes";
    desk.refused(&format!("{simulate} dvd --set block_bytes=1e16"), 2, range);
    let len = std::fs::metadata(desk.path("plain.sealift")).unwrap().len();
    let why = format!("the bundle, {len} bytes, does not fit on a device");
    desk.refused(&format!("{simulate} dvd --set capacity_bytes=1000"), 2, &why);
    desk.write("page.html", "mine");
    desk.refused(&format!("{simulate} dvd --svg page.html"), 2, "page.html");
    assert_eq!(std::fs::read(desk.path("page.html")).unwrap(), b"mine");
    desk.good(&format!("{simulate} dvd --svg page.html --force"));
    desk.write("junk", noise(1, 200_000));
    desk.refused("simulate plain.sealift --profile junk --device dvd", 2, "junk: line 1: ");
    desk.write("above", "dir00/file0000\n../../etc/passwd\n");
    desk.refused("simulate plain.sealift --profile above --device dvd", 2, "above: line 2: ");
    desk.write("junk.sealift", noise(1, 5000));
    desk.refused("simulate junk.sealift --profile profile --device dvd", 1, "junk.sealift");
}

#[test]
fn a_delta_needs_its_base() {
    let desk = Desk::scattered();
    desk.good("key generate -o release");
    let key = std::fs::read_to_string(desk.path("release.pub")).unwrap();
    desk.write("signers", format!("os namespaces=\"sealift\" {key}"));
    desk.pack("plain.sealift", "--chunk-size 64KiB --key release --force");
    desk.write("tree/dir00/file0000", noise(7777, 20_000));
    desk.pack("delta.sealift", "--base plain.sealift --trust signers");
    let simulate = "simulate delta.sealift --profile profile --device dvd";
    desk.refused(simulate, 4, "delta");
    desk.refused("simulate plain.sealift --profile profile --device dvd --base ordered.sealift", 2, "base");
    desk.good("pack tree -o other.sealift --name app --bundle-version 9 --allow-unsigned");
    let (status, _, said) = desk.run(&format!("{simulate} --base other.sealift"));
    assert_eq!(status, Some(4), "{said}");
    let both =
        ["delta.sealift: wrong base: this delta needs os version 1 (", "; other.sealift: it has app version 9 ("];
    assert!(both.iter().all(|part| said.contains(part)), "{said}");
}

//! With the feature `portal`, lists the page's files.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_PORTAL").is_some() {
        list_page();
    }
}

/// Writes page.rs: the files that a browser requests, with their content.
fn list_page() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where"));
    // Below cargo's build folder, in which another target has a folder of its own.
    let page = out.ancestors().map(|folder| folder.join("web/www")).find(|page| page.join("index.html").exists());
    let page = page.expect("the feature `portal` takes the page that `cargo xtask web` makes: run that first");
    println!("cargo:rerun-if-changed={}", page.display());
    let mut list = String::from("const FILES: &[File] = &[\n");
    add(&page, "", &mut list);
    list.push_str("];\n");
    fs::write(out.join("page.rs"), list).expect("OUT_DIR can be written");
}

fn add(folder: &Path, below: &str, list: &mut String) {
    let entries = fs::read_dir(folder).expect("the page can be read");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("the page can be read").path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().and_then(|name| name.to_str()).expect("the page's names are text");
        let below = format!("{below}/{name}");
        if path.is_dir() {
            add(&path, &below, list);
        } else if let Some(media_type) = media_type(name) {
            let file =
                format!("File {{ path: {below:?}, media_type: {media_type:?}, content: include_bytes!({path:?}) }},");
            writeln!(list, "    {file}").expect("a String takes everything");
        }
    }
}

/// Returns the media type of a file that a browser requests; type declarations and the package's texts have none.
fn media_type(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit_once('.')?;
    match extension {
        "html" => Some("text/html; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "js" => Some("text/javascript; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        "wasm" => Some("application/wasm"),
        _ => None,
    }
}

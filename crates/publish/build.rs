//! Brings the built page of publications (`web/dist/publication.html`) into the program. Where `web/` was not built, a plain page
//! without charts stands in, and the build says so: `make` builds the page first.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo::rustc-check-cfg=cfg(plimsoll_web)");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/fallback.html");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let built = root.join("../../web/dist/publication.html");
    println!("cargo::rerun-if-changed={}", built.display());
    let out = Path::new(&env::var_os("OUT_DIR").expect("cargo sets it")).join("publication.html");
    let page = if built.is_file() {
        println!("cargo::rustc-cfg=plimsoll_web");
        built
    } else {
        println!(
            "cargo::warning=web/dist/publication.html is missing: publications will have no charts. Run `make web` first."
        );
        root.join("src/fallback.html")
    };
    if let Err(e) = fs::copy(&page, &out) {
        panic!("{} could not be copied: {e}. Run `make web` first.", page.display());
    }
}

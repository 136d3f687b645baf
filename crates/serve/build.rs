//! Brings the built page of the history (`web/dist/history.html`) into the program. Where `web/` was not built, a plain list stands in,
//! and the build says so: `make` builds the page first.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/fallback.html");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let built = root.join("../../web/dist/history.html");
    println!("cargo::rerun-if-changed={}", built.display());
    let out = Path::new(&env::var_os("OUT_DIR").expect("cargo sets it")).join("history.html");
    let page = if built.is_file() {
        built
    } else {
        println!(
            "cargo::warning=web/dist/history.html is missing: the history will be a plain list. Run `make web` first."
        );
        root.join("src/fallback.html")
    };
    if let Err(e) = fs::copy(&page, &out) {
        panic!("{} could not be copied: {e}. Run `make web` first.", page.display());
    }
}

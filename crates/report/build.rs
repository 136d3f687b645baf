//! Brings the built page (`web/dist/report.html`) into the program. Where `web/` was not built, a plain page of
//! tables stands in, and the build says so: `make` builds the page first.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo::rustc-check-cfg=cfg(plimsoll_web)");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/fallback.html");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let built = root.join("../../web/dist/report.html");
    println!("cargo::rerun-if-changed={}", built.display());
    let out = Path::new(&env::var_os("OUT_DIR").expect("cargo sets it")).join("report.html");
    let page = if built.is_file() {
        println!("cargo::rustc-cfg=plimsoll_web");
        built
    } else {
        println!(
            "cargo::warning=web/dist/report.html is missing: HTML reports will be plain tables. Run `make web` first for charts."
        );
        root.join("src/fallback.html")
    };
    if let Err(e) = fs::copy(&page, &out) {
        panic!("{} could not be copied: {e}. Run `make web` first.", page.display());
    }
}

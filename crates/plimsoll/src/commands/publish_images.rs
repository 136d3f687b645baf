//! The charts of a publication as files, drawn by the page itself in a Chromium: there is no second code that draws.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use plimsoll_publish::site::SiteFile;

const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/// A browser that draws nothing by then is stopped.
const LIMIT: Duration = Duration::from_secs(90);
/// So often a page that is printed half drawn is drawn anew.
const TRIES: usize = 3;
/// What it may print.
const MOST_PRINTED: u64 = 256 << 20;

/// Of the first page; why there are none, in words.
pub fn images(files: &[SiteFile]) -> Result<Vec<SiteFile>, String> {
    let browser = browser().ok_or("no Chromium is in PATH")?;
    let page = files.iter().find(|f| f.path == "index.html").ok_or("there is no first page")?;
    let place = Place::make()?;
    let file = place.0.join("index.html");
    fs::write(&file, &page.content).map_err(|e| format!("{}: {e}", file.display()))?;
    // The browser prints the page when its own clock says so, which does not wait for a picture that is still being drawn where the
    // machine is busy.
    let mut found = Vec::new();
    for _ in 0..TRIES {
        found = parse(&dom(&browser, &file, &place.0)?);
        if !found.is_empty() && half_drawn(&found).is_empty() {
            return Ok(found);
        }
    }
    if found.is_empty() {
        return Err("the browser drew no chart".into());
    }
    Err(format!(
        "the browser drew {} in part only; call it again when this machine is less busy",
        half_drawn(&found).join(", ")
    ))
}

/// Charts of which only one of the two forms is there.
fn half_drawn(found: &[SiteFile]) -> Vec<&str> {
    let has = |path: &str| found.iter().any(|f| f.path == path);
    let charts = found.iter().filter_map(|f| f.path.strip_suffix(".svg").or(f.path.strip_suffix(".png")));
    charts.filter(|c| !(has(&format!("{c}.svg")) && has(&format!("{c}.png")))).collect()
}

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let at = |name: &&str| std::env::split_paths(&path).map(|dir| dir.join(name)).find(|p| p.is_file());
    NAMES.iter().find_map(at)
}

/// Of this process alone, gone at its end.
struct Place(PathBuf);

impl Place {
    fn make() -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!(
            "plimsoll-images-{}-{}",
            std::process::id(),
            plimsoll_store::rundir::new_id()
        ));
        fs::create_dir(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn dom(browser: &Path, page: &Path, place: &Path) -> Result<String, String> {
    let mut command = Command::new(browser);
    command
        .args([
            "--headless",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
        ])
        .args(["--disable-sync", "--window-size=1200,900", "--virtual-time-budget=20000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", place.join("profile").display()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    // Chromium has no sandbox for root; the page is ours, and asks the network for nothing.
    if rustix_is_root() {
        command.arg("--no-sandbox");
    }
    command.arg(format!("file://{}#images", page.display()));
    let mut child = command.spawn().map_err(|e| format!("{}: {e}", browser.display()))?;
    let mut stdout = child.stdout.take().ok_or("its output cannot be read")?;
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = stdout.by_ref().take(MOST_PRINTED).read_to_end(&mut text);
        text
    });
    let until = Instant::now() + LIMIT;
    while !reader.is_finished() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    if !reader.is_finished() {
        let _ = child.kill();
        let _ = child.wait();
        return Err(format!("{} did not end within {} s", browser.display(), LIMIT.as_secs()));
    }
    let _ = child.wait();
    let text = reader.join().map_err(|_| "its output could not be read")?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn rustix_is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0)
}

/// What the page left for us: `<pre class="image" data-file="NAME">BASE64</pre>`.
fn parse(dom: &str) -> Vec<SiteFile> {
    let mut out: Vec<SiteFile> = Vec::new();
    for part in dom.split("<pre class=\"image\" data-file=\"").skip(1) {
        let Some((name, rest)) = part.split_once("\">") else { continue };
        let Some((text, _)) = rest.split_once("</pre>") else { continue };
        let is_plain = name.len() < 80
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.'));
        let is_image = name.ends_with(".svg") || name.ends_with(".png");
        if let (true, true, Some(content)) = (is_plain, is_image, base64(text))
            && !name.starts_with('.')
            && out.iter().all(|f| f.path != format!("images/{name}"))
        {
            out.push(SiteFile { path: format!("images/{name}"), content });
        }
    }
    out
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut n) = (0u32, 0);
    for c in text.trim().trim_end_matches('=').bytes() {
        let value = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        n += 6;
        if n >= 8 {
            n -= 8;
            out.push((bits >> n) as u8);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_taken_by_plain_names_only() {
        let pre = |name: &str, text: &str| format!("<pre class=\"image\" data-file=\"{name}\">{text}</pre>");
        let dom = [
            pre("rates-1.svg", "PHN2Zy8+"),
            pre("../x.svg", "AAAA"),
            pre("a.html", "AAAA"),
            pre("b.png", "no?"),
            pre("rates-1.svg", "AAAA"),
        ]
        .concat();
        let found = parse(&dom);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].path.as_str(), &found[0].content[..]), ("images/rates-1.svg", &b"<svg/>"[..]));
        assert_eq!(base64("/+8=").unwrap(), [0xff, 0xef]);
    }
}

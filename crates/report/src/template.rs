//! The built pages of `web/`, filled: marks of the template are replaced, and nothing else is.

use std::fmt::Write as _;

/// Where the data for the page's script stands.
pub const DATA_MARK: &str = "<!--PLIMSOLL_DATA-->";
/// Where what needs no script stands.
pub const STATIC_MARK: &str = "<!--PLIMSOLL_STATIC-->";
/// The title.
pub const TITLE_MARK: &str = "<!--PLIMSOLL_TITLE-->";

/// The page: each mark of the template replaced by its text, and the program named in its head, by which it is known again and may be
/// overwritten by the next.
pub fn filled(template: &str, parts: &[(&str, &str)]) -> String {
    let mut out =
        String::with_capacity(template.len() + parts.iter().map(|(_, t)| t.len()).sum::<usize>() + 256);
    let mut rest = template;
    if let Some((before, after)) = rest.split_once("<head>\n") {
        let _ = write!(
            out,
            "{before}<head>\n<meta name=\"generator\" content=\"plimsoll {}\">\n",
            env!("CARGO_PKG_VERSION")
        );
        rest = after;
    }
    // Split at the marks of the template itself, so that no text of a run can stand for one.
    while let Some(at) = rest.find("<!--PLIMSOLL_") {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (mark, text) =
            parts.iter().find(|(mark, _)| rest.starts_with(mark)).copied().unwrap_or(("<", "<"));
        out.push_str(text);
        rest = &rest[mark.len()..];
    }
    out.push_str(rest);
    out
}

/// JSON that no HTML parser takes for markup: `</script>` and `<!--` cannot occur in it.
pub fn embeddable(json: &str) -> String {
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_looks_like_a_mark_is_none() {
        let template = "<html><head>\n<title><!--PLIMSOLL_TITLE--></title></head><!--PLIMSOLL_OTHER--><!--PLIMSOLL_STATIC-->";
        let page = filled(template, &[(TITLE_MARK, "<!--PLIMSOLL_STATIC-->"), (STATIC_MARK, "body")]);
        assert!(
            page.contains("<title><!--PLIMSOLL_STATIC--></title></head><!--PLIMSOLL_OTHER-->body"),
            "{page}"
        );
        assert!(page.starts_with("<html><head>\n<meta name=\"generator\" content=\"plimsoll "), "{page}");
    }
}

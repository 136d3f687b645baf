//! Every document of a server is read or refused, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_s3::xml;

fuzz_target!(|body: &[u8]| {
    let _ = xml::ErrorDocument::parse(body);
    let _ = xml::ListPage::parse(body);
    let _ = xml::DeleteResult::parse(body);
    let _ = xml::UploadsPage::parse(body);
    let _ = xml::PartsPage::parse(body);
    let _ = xml::parse_initiate(body);
    let _ = xml::parse_complete(body);
    let _ = xml::parse_copy(body);
    let _ = xml::parse_location(body);
});

//! Any text is a campaign or an error; what it comes to can be forecast; any text is a ledger or a line that is none.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_campaign::{CampaignFile, CampaignState, cells, forecast, ledger, order};

fuzz_target!(|text: &str| {
    let read = ledger::entries(text);
    let Ok(file) = CampaignFile::from_toml(text) else { return };
    let cells = cells::expand(&file).expect("it was checked");
    let state = CampaignState::of(&file, &cells, &read.unwrap_or_default());
    let _ = forecast::to_go(&file, &cells, &state);
    let block = order::block(&cells, file.order, file.seed, 0);
    assert_eq!(block.len(), cells.iter().filter(|c| c.target.is_some()).count());
    if let Some((i, _)) = state.next(&file, &cells, |_| false) {
        assert!(state.cells[i].to_go() > 0);
    }
});

//! `prices.toml` to prices: syntax, unknown keys, then what no syntax can say. Each error has a place and a remedy.

use plimsoll_model::cost::PriceFile;

/// Why prices cannot be used.
#[allow(missing_docs, reason = "each message has all fields in it")]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PricesError {
    /// The message has line and column.
    #[error("{0}\nCorrect the line named above; prices/examples.toml shows every key")]
    Syntax(String),
    #[error("{place}: {problem}. {remedy}")]
    Invalid { place: String, problem: String, remedy: String },
}

/// Parses and checks.
pub fn parse(text: &str) -> Result<PriceFile, PricesError> {
    let file: PriceFile =
        toml::from_str(text).map_err(|e| PricesError::Syntax(e.to_string().trim_end().to_owned()))?;
    match file.check() {
        Ok(()) => Ok(file),
        Err(e) => Err(PricesError::Invalid { place: e.place, problem: e.problem, remedy: e.remedy }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use plimsoll_model::cost::PriceSubject;

    use super::*;

    const SOUND: &str = "version = 1\ncurrency = \"USD\"\nmonth = \"30d\"\n[subjects.a]\ndate = \"2018-07-01\"\nregion = \"r\"\nsource = \"s\"\n";

    fn told(more: &str) -> String {
        parse(&format!("{SOUND}{more}")).unwrap_err().to_string()
    }

    #[test]
    fn the_examples_are_read() {
        let file = parse(include_str!("../../../prices/examples.toml")).unwrap();
        assert!(file.subjects.len() > 4);
        assert!(file.subjects.values().all(|s| !s.source.is_empty()));
    }

    /// Names of all keys of a table and of those in it.
    fn keys_of(value: &serde_json::Value, keys: &mut BTreeSet<String>) {
        match value {
            serde_json::Value::Object(map) => map.iter().for_each(|(key, value)| {
                keys.insert(key.clone());
                keys_of(value, keys);
            }),
            serde_json::Value::Array(list) => list.iter().for_each(|value| keys_of(value, keys)),
            _ => {}
        }
    }

    /// The README promises it.
    #[test]
    fn the_examples_have_every_key() {
        let examples: toml::Value = toml::from_str(include_str!("../../../prices/examples.toml")).unwrap();
        let mut written = BTreeSet::new();
        keys_of(&serde_json::to_value(examples).unwrap(), &mut written);
        let schema = serde_json::to_value(schemars::schema_for!(PriceSubject)).unwrap();
        let tables = schema["$defs"].as_object().unwrap().values().chain([&schema]);
        let known: Vec<&String> =
            tables.filter_map(|t| t["properties"].as_object()).flat_map(|t| t.keys()).collect();
        assert!(known.len() > 20, "{known:?}");
        let missing: Vec<_> = known.into_iter().filter(|key| !written.contains(*key)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn an_unknown_key_is_told_with_its_line_and_what_to_write() {
        let text = told("[subjects.a.egress]\nprise = 0.1\n");
        assert!(text.contains("line 9") && text.contains("prise") && text.contains("`price`"), "{text}");
    }

    #[test]
    fn what_no_syntax_says_is_told_with_place_and_remedy() {
        let cases = [
            ("[subjects.a.capacity]\nprice = 1", "subjects.a.capacity: needs either price and per, or steps"),
            ("redundancy = 0.5", "redundancy: is below 1"),
            (
                "[[subjects.a.requests]]\nclass = \"A\"\nops = [\"put\"]\nprice = 1\nper = 0",
                "requests 'A': needs ops",
            ),
            (
                "[[subjects.a.requests]]\nclass = \"A\"\nops = [\"put\"]\nprice = 1\nper = 1\n[[subjects.a.requests]]\nclass = \"B\"\nops = [\"put\"]\nprice = 1\nper = 1",
                "put is in class 'A', too. Name each op in one class.",
            ),
            (
                "[subjects.a.capacity]\nsteps = [{ up_to = \"64GiB\", price = 2 }, { up_to = \"32GiB\", price = 1 }]",
                "are not in order",
            ),
        ];
        for (more, part) in cases {
            assert!(told(more).contains(part), "{}", told(more));
        }
        for (from, to, part) in [
            ("30d", "3d", "month: 3d is no month"),
            ("2018-07-01", "2018-02-30", "'2018-02-30' is no date"),
            ("\"s\"", "\"\"", "source: is empty"),
            ("USD", "dollars", "'dollars' is no currency"),
            ("version = 1", "version = 2", "version: 2 is not a version"),
        ] {
            let text = parse(&SOUND.replace(from, to)).unwrap_err().to_string();
            assert!(text.contains(part), "{text}");
        }
    }
}

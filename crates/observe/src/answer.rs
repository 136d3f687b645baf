//! What an existing Prometheus answers (`/api/v1/query` for a range of raw samples): the newest value of each series with the time at
//! which it was made, and how often they are made.

use serde_json::Value;

use crate::rules;
use crate::text::{MOST_SERIES, MetricSeries, NotMetrics};

/// Labels and characters that are kept, as of a page.
const MOST_LABELS: usize = 64;
const MOST_LABEL_CHARS: usize = 200;

/// A query for all names that are known, where the user's selector holds, over so many seconds of raw samples.
pub fn query(selector: &str, over_s: u64) -> String {
    let names: Vec<&str> = rules::all().map(|r| r.name).collect();
    let selector = selector.trim().trim_start_matches('{').trim_end_matches('}').trim_matches([' ', ',']);
    let comma = if selector.is_empty() { "" } else { "," };
    format!("{{__name__=~\"{}\"{comma}{selector}}}[{over_s}s]", names.join("|"))
}

/// Series with their newest values, what was left out, and the longest time between two samples of one series, seconds.
pub fn series(text: &str) -> Result<(Vec<MetricSeries>, u64, f64), NotMetrics> {
    let bad = |what: &str| NotMetrics::Answer(what.to_owned());
    let answer: Value = serde_json::from_str(text).map_err(|e| NotMetrics::Answer(e.to_string()))?;
    if answer["status"] != "success" {
        let why = answer["error"].as_str().unwrap_or("its status is no success");
        return Err(NotMetrics::Answer(plimsoll_model::text::said(why)));
    }
    let result = answer["data"]["result"].as_array().ok_or_else(|| bad("there is no result in it"))?;
    let (mut out, mut between_s) = (Vec::new(), 0.0f64);
    for one in result.iter().take(MOST_SERIES) {
        let values = one["values"].as_array().map(Vec::as_slice).unwrap_or_default();
        let at = |v: &Value| Some((v[0].as_f64()?, v[1].as_str()?.parse::<f64>().ok()?));
        let times: Vec<(f64, f64)> =
            values.iter().filter_map(at).filter(|(t, v)| t.is_finite() && v.is_finite()).collect();
        let Some((made_s, value)) = times.last().copied() else { continue };
        between_s = times.windows(2).map(|w| w[1].0 - w[0].0).fold(between_s, f64::max);
        let text = |v: &Value| {
            let short: String = v.as_str().unwrap_or_default().chars().take(MOST_LABEL_CHARS).collect();
            plimsoll_model::text::clean(&short).into_owned()
        };
        let labels = one["metric"].as_object().into_iter().flatten().take(MOST_LABELS);
        let mut labels: Vec<(String, String)> = labels.map(|(n, v)| (n.clone(), text(v))).collect();
        let name = labels.iter().position(|(n, _)| n == "__name__").map(|i| labels.swap_remove(i).1);
        out.extend(name.map(|name| MetricSeries { name, labels, value, made_s: Some(made_s) }));
    }
    Ok((out, result.len().saturating_sub(MOST_SERIES) as u64, between_s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_samples_keep_their_own_time() {
        let text = r#"{"status":"success","data":{"resultType":"matrix","result":[
            {"metric":{"__name__":"node_load1","instance":"s1:9100","job":"n"},"values":[[100.5,"1"],[115.5,"2"]]},
            {"metric":{"__name__":"node_x","instance":"s2:9100"},"values":[[101,"NaN"]]}]}}"#;
        let (found, left_out, between_s) = series(text).unwrap();
        assert_eq!((found.len(), left_out, between_s), (1, 0, 15.0));
        assert_eq!(
            (found[0].value, found[0].made_s, found[0].label("instance")),
            (2.0, Some(115.5), "s1:9100")
        );
        let refused =
            series(r#"{"status":"error","error":"parse error \u001b[2J"}"#).unwrap_err().to_string();
        assert!(refused.contains("parse error") && !refused.contains('\u{1b}'));
        assert!(series("{}").is_err() && series("<html>").is_err());
    }

    #[test]
    fn the_query_asks_for_what_is_known_where_the_user_says() {
        let q = query("{instance=~\"s[1-4].*\"}", 120);
        assert!(q.starts_with("{__name__=~\"node_cpu_seconds_total|"), "{q}");
        assert!(q.ends_with("\",instance=~\"s[1-4].*\"}[120s]"), "{q}");
        assert!(query("", 60).ends_with("\"}[60s]"));
    }
}

//! Plans of simulated storage whose records are the same wherever they are carried out. The fleet's tests have them from here, too.

/// Each op takes 20 ms, with a spread: 1,200 a second.
pub const PLAN: &str = r#"
version = 1
seed = 7
[targets.s]
kind = "sim"
base = "20ms"
spread = 0.3
[[stage]]
warmup = "1s"
[[stage.workload]]
name = "w"
mix = { get = 1 }
concurrency = 24
stop = { duration = "5s" }
"#;

/// A load, the same against a token bucket, and a search that decides its stages by what it sees.
pub fn bit_exact() -> [String; 3] {
    let bucket =
        "base = \"20ms\"\n[targets.s.ops]\nsustained_per_s = 50.0\nburst_per_s = 200.0\ncapacity = 90.0";
    let limited = PLAN.replace("base = \"20ms\"\nspread = 0.3", bucket);
    let template = PLAN.replace("[[stage]]", "[controller]\nkind = \"saturation\"\n[controller.template]");
    let searched = template
        .replace("[[stage.workload]]", "[[controller.template.workload]]")
        .replace("spread = 0.3", "servers = 6")
        .replace("concurrency = 24\n", "");
    [PLAN.to_owned(), limited, searched]
}

// Programs of the workspace that make what these tests open.
import { execFileSync } from "node:child_process";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");

/** The path of an example. Built with the whole workspace, as `cargo test --workspace` has built it: a package by itself has other features, and all it depends on would be compiled again. */
export function example(name) {
  execFileSync("cargo", ["build", "--quiet", "--workspace", "--locked", "--examples"], { cwd: root, stdio: "inherit" });
  return join(process.env.CARGO_TARGET_DIR ?? join(root, "target"), "debug/examples", name);
}

// What `plimsoll serve` answers (crates/serve/src/history).
import type { Estimate, Level } from "./feed";
import type { Figure } from "./history-state";

export interface Course { of: string | null; seconds: number; ops_per_s: number[] }
export interface ListedRun { id: string; started_at: string; what: string; result: string; mark: string; standing: string; labels: Record<string, string>; imported: string | null; course: Course | null }
export interface ListedTest { id: string; started_at: string; hosts: number; result: string; status: string }
export interface ListAnswer {
  schema: "plimsoll.history/1"; all: number; found: number; skip: number; runs: ListedRun[]; tests: ListedTest[];
  labels: Record<string, string[]>; ops: string[]; note: string | null;
}
export interface PivotCell { figure: Estimate | null; said: string; lines: number; left_out: number; runs: string[] }
export interface PivotAnswer {
  schema: "plimsoll.pivot/1"; figure: Figure; row_head: string; column_head: string; rows: string[]; columns: string[]; cells: (PivotCell | null)[][]; more: [number, number];
}
export interface ComparedRun { id: string; side: "a" | "b"; started_at: string; what: string; mark: string; labels: Record<string, string> }
export interface ComparedRow {
  line: string; figure: Figure; each: ({ figure: Estimate | null; valid: boolean } | null)[]; ratio: Estimate | null; outcome: string; holds_among_all: boolean | null; said: string;
}
export interface ComparedFinding { code: string; level: Level; text: string }
export interface CompareAnswer {
  schema: "plimsoll.compare/1"; runs: ComparedRun[]; rows: ComparedRow[]; findings: ComparedFinding[]; not_known: string | null; paired: boolean; command: string;
}
export interface TrendAnswer {
  schema: "plimsoll.trend/1"; figure: Figure; lines: { key: string; name: string; runs: number }[]; line: string | null;
  points: { run: string; started_at: string; figure: Estimate }[]; left_out: number; older: number;
  steps: { at: number; run: string; ratio: Estimate | null; p: number }[]; levels: { from: number; to: number; median: number }[]; said: string;
}
export type Answer = ListAnswer | PivotAnswer | CompareAnswer | TrendAnswer;

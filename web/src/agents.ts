// The agents of a run that has several: what each of them did, and how its clock lies to the conductor's.
import type { AgentSummary, Run } from "./feed";
import { counted, latency, MIB, percent, significant } from "./format";
import { table, type Table } from "./table";

/** Between machines the offset is that of their boots, and may be days: only its bound matters then. */
function clock({ clock_offset_ns: offset, clock_bound_ns: bound }: AgentSummary): string {
  return offset === undefined ? "" : `${signed(offset)} ± ${latency(bound)}`;
}

function signed(ns: number): string {
  const far = Math.abs(ns);
  return `${ns < 0 ? "-" : "+"}${far < 1e9 ? latency(far) : since(far / 1e9)}`;
}

/** Since the first load began. */
const since = (s: number): string => `${s.toFixed(1).replace(/\B(?=(\d{3})+\.)/g, ",")} s`;

const known = <T>(value: T | undefined, text: (value: T) => string): string => (value === undefined ? "" : text(value));

/** Null: there is one only, and the lines are its own. */
export function agentTable(run: Run): Table | null {
  const all = run.summary.agents ?? [];
  if (all.length === 0) return null;
  return table("Agents", 1, ["agent", "host", run.block ? ">IOPS" : ">op/s", ">share", ">>MiB/s", ">busy", ">>CPU", ">>NIC", ">>p50", ">p99", ">>clock", ">>start", ">>first op", ">>last op"], all.map((a) => [
    a.agent, a.host, significant(a.ops_per_s, 4), percent(a.share), a.bytes_per_s === undefined ? "" : significant(a.bytes_per_s / MIB, 4),
    percent(a.busy_fraction), known(a.cpu_fraction, percent), known(a.nic_fraction, percent), latency(a.p50_ns), latency(a.p99_ns), clock(a),
    known(a.start_skew_ns, signed), known(a.first_op_s, since), known(a.last_op_s, since)]));
}

/** Of what is void no share is in a title. */
export function ofAgents(run: Run): string | null {
  const all = run.summary.agents ?? [];
  if (all.length === 0) return null;
  const shares = all.map((a) => a.share);
  const bounds = all.flatMap((a) => a.clock_bound_ns ?? []);
  const named = (name: string): string[] => [...new Set(run.summary.findings.flatMap((f) => (f.name === name && f.agent ? [f.agent] : [])))];
  const [behind, lost] = [named("straggler"), named("agent_lost")];
  return [counted(all.length, "agent"),
    ...(run.summary.answered ? [`${percent(Math.min(...shares))} to ${percent(Math.max(...shares))} each`] : []),
    ...(lost.length ? [`${lost.join(", ")} lost`] : []),
    ...(behind.length ? [`${behind.join(", ")} did less than the others`] : []),
    ...(bounds.length ? [`clocks within ${latency(Math.max(...bounds))}`] : [])].join(", ");
}

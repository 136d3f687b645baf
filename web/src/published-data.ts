// The data of a publication's charts: crates/publish/src/chart.rs has what each is.
import type { Estimate } from "./feed";

export interface Bar { subject: string; group: string; rate: Estimate | null; promised: number | null; void: string | null }
export interface BarChart { name: string; unit: string; by: string; bars: Bar[] }
export interface CurveLine { subject: string; points: [number, Estimate][]; void: [number, string][]; ops_cap: number | null; bytes_cap: number | null; knee_bytes: number | null }
export interface CurveChart { name: string; lines: CurveLine[] }
export interface LoadPoint { subject: string; workload: string; rate: Estimate; p50_ns: number | null; p99_ns: number | null }
export interface LoadChart { name: string; points: LoadPoint[] }
export interface CliffChart { name: string; start_s: number; step_s: number; ops_per_s: (number | null)[] }
export interface CostPoint { subject: string; workload: string; rate: Estimate; cost: number }
export interface ChartData { schema: string; bars: BarChart[]; curves: CurveChart[]; knees: LoadChart[]; cliffs: CliffChart[]; costs: CostPoint[]; cost_unit: string; left_out: number }

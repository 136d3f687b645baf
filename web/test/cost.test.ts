// What the page says of money, where no browser is needed to see it.
import { describe, expect, it } from "vitest";

import { amount, arithmetic, assumptions, costTable, money, ofCost, worstMonth } from "../src/cost";
import type { CostFigure, CostSummary, Run } from "../src/feed";
// @ts-expect-error made for the browser's tests, too, which know no types
import * as made from "./made.mjs";

const cost = (more: Partial<CostSummary> = {}): CostSummary => ({ ...(made.COST as CostSummary), ...more });
const priced = (c: CostSummary): Run => { const r = made.run("a", []) as Run; r.summary.cost = c; return r; };
const only = (...names: string[]): CostFigure[] => cost().figures.filter((f) => names.includes(f.name));

describe("an amount", () => {
  it("is to the cent, or has three digits below one", () => {
    expect([1425.6, 142.56, 0, 0.000512, 1].map(money)).toEqual(["1,425.60", "142.56", "0.00", "0.000512", "1.00"]);
  });
  it("has its interval, and one without an end is no number", () => {
    expect(amount({ value: 142.56, low: 129.6, high: 155.52, n_eff: 9 })).toBe("142.56 (129.60 to 155.52)");
    expect(amount({ value: 5.28, low: 5.28, high: 5.28, n_eff: null })).toBe("5.28");
    expect(amount({ value: 5, low: 0, high: null, n_eff: 1 })).toBe("5.00 (0.00 to unbounded)");
  });
});

describe("the fold of cost", () => {
  it("is not there without prices", () => expect(ofCost(made.run("a", []) as Run)).toBeNull());
  it("says the month at the rate, this load and the date of the prices", () => {
    const one = cost({ figures: cost().figures.filter((f) => f.workload !== "w/read") });
    expect(ofCost(priced(one))).toBe("142.56 (129.60 to 155.52) USD/month at this rate; this load 0.000512 USD (prices of 2018-07-01)");
  });
  it("says of several lines the dearest month at the end of its interval", () => {
    expect(ofCost(priced(cost()))).toBe("at most 155.52 USD/month at the rate of w/write; this load 0.000512 USD (prices of 2018-07-01)");
    const endless = cost().figures.map((f) => (f.workload === "w/read" && f.name === "month_at_rate" ? { ...f, amount: { ...f.amount, high: null } } : f));
    expect(worstMonth(cost({ figures: endless }))?.workload).toBe("w/read");
    expect(ofCost(priced(cost({ figures: endless })))).toContain("at most unbounded USD/month");
  });
  it("falls back on the month as provisioned, and on nothing", () => {
    expect(ofCost(priced(cost({ figures: only("month") })))).toBe("7.68 USD/month (prices of 2018-07-01)");
    expect(ofCost(priced(cost({ figures: [] })))).toBe("no figure can be given (prices of 2018-07-01)");
  });
});

describe("what is in it", () => {
  it("has a row for each line, and leaves out what no line has", () => {
    const t = costTable(cost());
    expect(t.heads.map((x) => x.text)).toEqual(["line", "a month per 1,000", "a month at this rate"]);
    expect(t.rows).toEqual([["w/write", "6.98 (6.40 to 7.68)", "142.56 (129.60 to 155.52)"], ["w/read", "", "10.00 (9.00 to 11.00)"]]);
  });
  it("has the arithmetic of each figure", () => {
    const rows = arithmetic(cost()).rows;
    expect(rows).toHaveLength(cost().figures.length);
    expect(rows.every((r) => r[3] !== "")).toBe(true);
  });
  it("says what it rests on: the worst month, date, region, source, hash, and what is not known", () => {
    const said = Object.fromEntries(assumptions(priced(cost({ open: ["why"] })), cost({ open: ["why"] })));
    expect(said["Worst case a month"]).toBe("155.52 USD/month: w/write at the upper end of its interval, without a pause for a month of 720 h");
    expect(said["Prices of"]).toBe("2018-07-01, southeastasia");
    expect(said["Source, as given"]).toBe(made.COST.source);
    expect(said["Price file"]).toContain("0123456789abcdef");
    expect(said["Requests"]).toBe("transactions counts read, write, fsync. An op that is in none of them is not paid for");
    expect(said["Not known"]).toBe("why");
    const none = Object.fromEntries(assumptions(priced(cost({ sha256: "", figures: [] })), cost({ sha256: "", figures: [] })));
    expect(none["Worst case a month"]).toBeUndefined();
    expect(none["Price file"]).toMatch(/^none/);
  });
});

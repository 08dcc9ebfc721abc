import { median } from "../../support/median.ts";
import { table } from "../machine.ts";
import { type Measured, ratio, strangers } from "./ratios.ts";

/** A figure that has a goal. If `value` is undefined, it could not be measured, and `note` says why. */
export type Figure = {
  readonly title: string;
  readonly value: number | undefined;
  readonly unit: string;
  readonly goal: { readonly atLeast: number } | { readonly atMost: number };
  readonly note?: string;
};

export type Report = {
  readonly seconds: number;
  readonly rounds: number;
  readonly pinned: boolean;
  readonly servers: readonly Measured[];
  readonly figures: readonly Figure[];
  readonly remarks: readonly string[];
};

export function reached({ value, goal }: Figure): boolean {
  if (value === undefined) return false;
  return "atLeast" in goal ? value >= goal.atLeast : value <= goal.atMost;
}

export function asTable({ seconds, rounds, pinned, servers, figures, remarks }: Report): string {
  const lines = [
    `${rounds} interleaved rounds in ${Math.round(seconds)} s, 32 connections, ` +
      `${pinned ? "the server on one core, load and Redis on another" : "nothing pinned"}; medians`,
    "",
    row("", "requests/s", "CPU µs", "p50 ms", "p99 ms"),
  ];
  for (const server of servers) {
    const of = (measure: "rate" | "cpu" | "p50" | "p99") => median(server.results.map((result) => result[measure]));
    const figures = [whole(of("rate")), of("cpu").toFixed(1), of("p50").toFixed(2), of("p99").toFixed(2)];
    const wrong = strangers(server);
    lines.push(row(server.title, ...figures) + (wrong === undefined ? "" : `  ${wrong}`));
  }
  lines.push("", row("", "measured", "goal", ""));
  for (const figure of figures) {
    const { title, value, unit, goal, note } = figure;
    const wanted = "atLeast" in goal ? `≥ ${goal.atLeast}` : `≤ ${goal.atMost}`;
    const verdict = value === undefined ? "refused" : reached(figure) ? "" : "missed";
    const text = value === undefined ? "none" : `${round(value)}${unit}`;
    lines.push(`${row(title, text, `${wanted}${unit}`, verdict)}${note === undefined ? "" : `  ${note}`}`.trimEnd());
  }
  return [...lines, "", ...remarks, ""].join("\n");
}

/** Returns the table of docs/why/performance.md: what each request costs, beside a refresh by the JSON route. */
export function costTable(measured: ReadonlyMap<string, Measured>): string {
  const json = measured.get("json");
  const rows = [...measured.values()].map((server) => {
    const share = json === undefined ? Number.NaN : ratio(server, json, "cpu");
    const cpu = median(server.results.map((result) => result.cpu));
    return [server.title, cpu.toFixed(1), typeof share === "number" ? share.toFixed(2) : share.refused];
  });
  return table(["a request", "CPU, µs", "of a refresh"], rows);
}

export function asJson(report: Report): string {
  const servers = report.servers.map((server) => ({
    title: server.title,
    expected: server.expected,
    strangers: strangers(server) ?? null,
    rate: median(server.results.map(({ rate }) => rate)),
    cpu: median(server.results.map(({ cpu }) => cpu)),
    p50: median(server.results.map(({ p50 }) => p50)),
    p99: median(server.results.map(({ p99 }) => p99)),
    rounds: server.results,
  }));
  const figures = report.figures.map((figure) => ({
    ...figure,
    value: figure.value ?? null,
    reached: reached(figure),
  }));
  return JSON.stringify({ ...report, servers, figures }, null, 2);
}

function row(title: string, ...cells: readonly string[]): string {
  return title.padEnd(48) + cells.map((cell) => cell.padStart(12)).join("");
}

function whole(value: number): string {
  return Math.round(value).toLocaleString("en").replaceAll(",", " ");
}

function round(value: number): string {
  return value >= 100 ? whole(value) : value.toFixed(2);
}

/** Formats tables for people: columns are aligned, and the last one is not padded. */
import { printable } from "./printable.ts";
import { style } from "./style.ts";

/** @param rows the first one is the heading */
export function table(rows: readonly (readonly string[])[]): string {
  const cells = rows.map((row) => row.map(printable));
  const width = (column: number) => Math.max(...cells.map((row) => row[column]?.length ?? 0));
  const lines = cells.map((row) =>
    row
      .map((cell, column) => cell.padEnd(column === row.length - 1 ? 0 : width(column)))
      .join("  ")
      .trimEnd(),
  );
  return lines.map((line, index) => (index === 0 ? style("bold", line) : line)).join("\n");
}

/** Formats a number of things: `1 user`, `2 users`. */
export const countOf = (count: number, thing: string) => `${count} ${thing}${count === 1 ? "" : "s"}`;

/** Formats one object with a line for each field. Fields without a value are omitted. */
export function fields(entries: readonly (readonly [name: string, value: string])[]): string {
  const present = entries.filter(([, value]) => value !== "");
  const width = Math.max(...present.map(([name]) => name.length));
  return present.map(([name, value]) => `${style("bold", name.padEnd(width))}  ${printable(value)}`).join("\n");
}

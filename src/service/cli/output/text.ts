/** Formats texts for people: tables, fields and colours. */
import { styleText } from "node:util";

/**
 * Makes a text from outside (a client's User-Agent, a subject) safe for a terminal: control characters, and those that reorder or hide
 * text, become visible escapes.
 */
export function printable(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu,
    (found) => `\\u{${(found.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

/**
 * Replaces the characters that a terminal obeys or hides by JSON's escapes: controls other than line breaks, tabs and colours, direction
 * marks, and other format characters. The lines of every command pass through it, so a value that `printable` has missed is visible too,
 * and JSON keeps its meaning, because such characters occur in its texts alone.
 */
export function escapeInvisible(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the escape character begins the codes of colours, which are kept.
  return text.replaceAll(/\x1b\[[\d;]*m|(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (found) =>
    found.length > 1 && found.startsWith("\x1b") ? found : toEscapes(found),
  );
}

const toEscapes = (text: string) =>
  Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, "0")}`).join("");

type Style = "bold" | "red" | "yellow" | "green";

/** Colours a text on terminals only. util.styleText respects `NO_COLOR` and `FORCE_COLOR`. */
export function style(format: Style, text: string, stream: NodeJS.WriteStream = process.stdout): string {
  return styleText(format, text, { stream });
}

/** Aligns columns, except the last one. The first row is the heading. */
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

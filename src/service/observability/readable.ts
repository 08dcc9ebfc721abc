/** Formats the log for people on a terminal. */

const COLORS: Readonly<Record<string, number>> = { debug: 34, info: 32, warn: 33, error: 31, fatal: 41 };

type Line = {
  readonly level: string;
  readonly time: string;
  readonly msg?: string;
  readonly err?: { readonly stack?: string };
} & Readonly<Record<string, unknown>>;

/** Converts a line of JSON to text: time of day (UTC), level and message, then the fields, then the stack of an error. */
export function readable(line: string): string {
  const { level, time, msg = "", err, ...fields } = JSON.parse(line) as Line;
  const color = `\x1b[${COLORS[level] ?? 0}m${level.toUpperCase().padEnd(5)}\x1b[0m`;
  const shown = Object.entries(fields)
    .filter(([name, value]) => name !== "event" || value !== msg)
    .map(([name, value]) => ` ${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  const { stack, ...details } = err ?? {};
  const error = err === undefined ? "" : `    ${stack?.replaceAll("\n", "\n    ") ?? JSON.stringify(details)}\n`;
  return `${time.slice(11, 23)} ${color} ${msg}\x1b[2m${shown.join("")}\x1b[0m\n${error}`;
}

/** The last line of a bench: on what its figures were measured. */
import { cpus, loadavg } from "node:os";

const load = () => loadavg()[0]?.toFixed(1);
const loadBefore = load();

/** Returns versions, machine, date, and the load average at the begin and the end. */
export function machine(...versions: readonly string[]): string {
  const [cpu] = cpus();
  const parts = [...versions, `Node ${process.version.slice(1)}`, `${cpus().length} × ${cpu?.model}`];
  return `${parts.join(", ")}, ${new Date().toISOString().slice(0, 10)}, load ${loadBefore} to ${load()}`;
}

/** Returns a table in Markdown. */
export function table(title: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(title), `|${"---|".repeat(title.length)}`, ...rows.map(line)].join("\n");
}

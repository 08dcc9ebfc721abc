/** Finds the variables that a misspelt name was probably meant to be. */
import { COMMAND_VARIABLES } from "./command-line.ts";
import { configVariables } from "./config.ts";
import type { Environment } from "./reader.ts";

/** Variables of OpenSSL whose names look like those of variables of this service. */
const FOREIGN: ReadonlySet<string> = new Set(["SSL_CERT_FILE", "SSL_CERT_DIR"]);

const COMMANDS: ReadonlySet<string> = new Set(COMMAND_VARIABLES);

export function misspeltVariables(env: Environment): string[] {
  const known = configVariables();
  const unset = [...known.keys()].filter((name) => !env[name]);
  return Object.keys(env).flatMap((name) => {
    if (known.has(name) || FOREIGN.has(name) || !env[name]) return [];
    // ADMIN_TOKEN is a variable of the commands. It may be a misspelt ADMIN_TOKENS, but not beside ADMIN_TOKENS_FILE: the service then has
    // its tokens from that file.
    if (name === "ADMIN_TOKEN" && env.ADMIN_TOKENS_FILE) return [];
    const meant = mostLike(name.toUpperCase(), unset);
    if (meant === undefined) return [];
    const what = COMMANDS.has(name)
      ? "a variable of the commands, not of the service"
      : "not a variable of this service";
    return [`${name} is ${what}: is ${meant} meant?`];
  });
}

/** Counts the edits between two texts: insertions, deletions, replacements, and swaps of neighbours (optimal string alignment). */
export function distance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, index) => index)];
  const at = (row: number, column: number) => rows[row]?.[column] ?? Number.POSITIVE_INFINITY;
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    rows.push(row);
    for (let j = 1; j <= b.length; j++) {
      const replaced = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swaps = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = swaps ? at(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY;
      row.push(Math.min(replaced, at(i - 1, j) + 1, (row[j - 1] ?? 0) + 1, swapped));
    }
  }
  return at(a.length, b.length);
}

/** Returns the known name that is at most one edit away, or at most two edits for a long name; undefined if there is none. */
function mostLike(name: string, known: Iterable<string>): string | undefined {
  const mostEdits = name.length < 8 ? 1 : 2;
  let best: string | undefined;
  let fewest = mostEdits + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) > mostEdits) continue;
    const edits = distance(name, candidate);
    if (edits < fewest) [best, fewest] = [candidate, edits];
  }
  return best;
}

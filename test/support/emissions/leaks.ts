/** Finds credentials among the words that services emitted during a run. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Leaks are found by comparing pieces of text. This is the length of a piece. Every part of a credential that has at least `PIECE + STRIDE
 * - 1` characters contains a whole piece.
 */
const PIECE = 16;
const STRIDE = 8;

export type Emissions = {
  readonly credentials: number;
  readonly words: number;
  /** Where a credential or a part of it was emitted, and its source, but never the credential itself. */
  readonly leaks: readonly string[];
};

type Line = readonly [kind: "made" | "emitted", word: string, source: string];

export function readEmissions(directory: string): Emissions {
  const lines = readdirSync(directory).flatMap((name) => linesOf(join(directory, name)));
  const pieces = new Map<string, string>();
  const emitted: Line[] = [];
  let credentials = 0;
  for (const line of lines) {
    const [kind, word, source] = line;
    if (kind === "emitted") emitted.push(line);
    else {
      credentials++;
      for (let at = 0; at + PIECE <= word.length; at += STRIDE) pieces.set(word.slice(at, at + PIECE), source);
    }
  }
  const leaks = new Set<string>();
  for (const [, word, source] of emitted) {
    const origin = originOf(word, pieces);
    if (origin !== undefined)
      leaks.add(`${source}: ${word.length} characters with a part of what was made as ${origin}`);
  }
  return { credentials, words: emitted.length, leaks: [...leaks] };
}

function originOf(word: string, pieces: ReadonlyMap<string, string>): string | undefined {
  for (let at = 0; at + PIECE <= word.length; at++) {
    const origin = pieces.get(word.slice(at, at + PIECE));
    if (origin !== undefined) return origin;
  }
  return undefined;
}

/** Reads the lines of a file. A process that was killed may have left an incomplete line. */
function linesOf(path: string): Line[] {
  const text = readFileSync(path, "utf8");
  return text
    .slice(0, text.lastIndexOf("\n") + 1)
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line);
}

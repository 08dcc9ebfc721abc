/** Makes mutants of a Lua script that are valid Lua: an operator is replaced by a similar one, or a line is removed. */
import type { Change } from "./change.ts";

const WORDS: readonly [pattern: RegExp, replacement: string][] = [
  [/<=/g, "<"],
  [/<(?!=)/g, "<="],
  [/>=/g, ">"],
  [/(?<![>])>(?![=>])/g, ">="],
  [/==/g, "~="],
  [/~=/g, "=="],
  [/\band\b/g, "or"],
  [/\bor\b/g, "and"],
  [/\bnot /g, ""],
  [/\btrue\b/g, "false"],
  [/ \+ /g, " - "],
  [/ - /g, " + "],
  [/ \* /g, " / "],
  [/math\.min/g, "math.max"],
  [/math\.max/g, "math.min"],
];
/** A statement of one line that neither declares, returns nor opens a block. */
const STATEMENT =
  /^[ \t]*(?!local\b|return\b|if\b|elseif\b|else\b|end\b|for\b|while\b|function\b|repeat\b|until\b|--|#)[A-Za-z_][^\n]*$/gm;

export function luaMutants(text: string): Change[] {
  // Comments and strings are replaced by text of the same length, so that they are not mutated and positions stay the same.
  const code = text.replace(/#![^\n]*|--[^\n]*|'[^'\n]*'/g, (part) => "_".repeat(part.length));
  const found: Change[] = [];
  for (const [pattern, replacement] of WORDS) {
    for (const { index, 0: word } of code.matchAll(pattern)) {
      found.push({ kind: "operator", start: index, end: index + word.length, replacement });
    }
  }
  for (const { index, 0: number } of code.matchAll(/(?<![\w.])\d+(?![\w.])/g)) {
    found.push({ kind: "constant", start: index, end: index + number.length, replacement: String(Number(number) + 1) });
  }
  for (const { index, 0: line } of code.matchAll(STATEMENT)) {
    const isComment = /^[_\s]*$/.test(line);
    if (isComment || /\b(?:then|do|function)\b/.test(line) || !isClosed(line)) continue;
    found.push({ kind: "statement removed", start: index, end: index + line.length, replacement: "" });
  }
  return found;
}

function isClosed(line: string): boolean {
  const count = (character: string) => line.split(character).length;
  return count("(") === count(")") && count("{") === count("}");
}

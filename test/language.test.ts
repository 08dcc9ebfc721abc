/**
 * The language of the repository: plain, modern technical English. This test finds words that engineers of the field do not use, or use
 * in another sense. CONTRIBUTING.md has the rules.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "..");
const PLACES = ["src", "test", "docs", "proto", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"];

/** Words that the field does not use, each with what to write instead. They are matched as whole words, in upper or lower case. */
const WORDS: readonly (readonly [words: RegExp, instead: string])[] = [
  [/doors?/, "listener, public API or admin API"],
  [/told/, "returned, reported, logged"],
  [/answers?|answered|answering/, "response, reply; to respond, reply"],
  [/he|him|his/, "the client, the caller, the attacker; it, they"],
  [/mend(?:s|ed|ing)?|heals? by hand/, "fix"],
  [/deeds?/, "operation"],
  [/lately/, "recently"],
  [/for ever/, "indefinitely"],
  [/bears/, "tolerates"],
  [/forced/, "exploited; with --force"],
  [/gone deaf/, "stalled"],
  [/ado/, "leave it out"],
  [/wings?/, "package; for src/service: the service"],
  [/rooms|(?:a|each|every|one|the|this|which) room(?! for)/, "folder"],
  [/walls|(?:a|each|every|its|no|the|this) wall(?! clock| time|$)/, "import rule"],
];

/** Places where a word is allowed, with the reason. */
const ALLOWED: readonly (readonly [file: string, text: string, why: string])[] = [
  ["test/language.test.ts", "", "names the words"],
  ["test/proofs/support/linearizability.ts", "Wing", "the name of an author"],
];

/** Files that are not checked: they are generated, are copies of released files, or are data. */
const LEFT_OUT = /(^|\/)(gen|released|node_modules)\/|(^|\/)package-lock\.json$/;
const TEXT = /\.(ts|md|proto|lua|sh|json|html)$/;

function filesOf(place: string): string[] {
  const path = join(ROOT, place);
  if (!statSync(path).isDirectory()) return [place];
  return readdirSync(path, { recursive: true, encoding: "utf8" })
    .map((name) => `${place}/${name.replaceAll("\\", "/")}`)
    .filter((name) => TEXT.test(name) && !LEFT_OUT.test(name) && statSync(join(ROOT, name)).isFile());
}

const OLD_WORDS = new RegExp(`(?<![\\w-])(?:${WORDS.map(([words]) => words.source).join("|")})(?![\\w-])`, "gi");

function insteadOf(found: string): string {
  return WORDS.find(([words]) => new RegExp(`^(?:${words.source})$`, "i").test(found))?.[1] ?? "";
}

/** Returns each word of a file that should be replaced, with its line. */
function oldWords(file: string): string[] {
  const lines = readFileSync(join(ROOT, file), "utf8").split("\n");
  return lines.flatMap((line, index) =>
    [...line.matchAll(OLD_WORDS)]
      .filter(() => !ALLOWED.some(([allowed, text]) => allowed === file && line.includes(text)))
      .map(([word]) => `${file}:${index + 1}: "${word}": write ${insteadOf(word)}`),
  );
}

test("every text uses the field's words", () => {
  expect(PLACES.flatMap(filesOf).flatMap(oldWords)).toEqual([]);
});

test("no exception is left that is not needed", () => {
  const stale = ALLOWED.filter(([file, text]) => {
    const lines = readFileSync(join(ROOT, file), "utf8").split("\n");
    return !lines.some((line) => line.includes(text) && line.search(OLD_WORDS) >= 0);
  });
  expect(stale).toEqual([]);
});

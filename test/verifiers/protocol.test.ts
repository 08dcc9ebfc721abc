/** docs/reference/verifier-protocol.md agrees with the code and the vectors. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { PROOF_REFUSALS, REFUSALS } from "../../src/verifier/index.ts";
import { VERSION, type VectorFile } from "../vectors/format.ts";

const ROOT = join(import.meta.dirname, "../..");
const page = readFileSync(join(ROOT, "docs/reference/verifier-protocol.md"), "utf8");
const file: VectorFile = JSON.parse(readFileSync(join(ROOT, "test/vectors/verifier.json"), "utf8"));

const sectionOf = (title: string) => new RegExp(`^#+ ${title}\n([^#]*)`, "m").exec(page)?.[1] ?? "";
const firstCells = (section: string) => [...section.matchAll(/^\| ((?:`\w+` ?)+)\|/gm)].map(([, cell = ""]) => cell);
const namesIn = (text: string) => [...text.matchAll(/`(\w+)`/g)].map(([, name]) => name as string);

test("it lists the reasons of the code", () => {
  const list = sectionOf("Reasons").trim().split("\n\n").at(-1) ?? "";
  expect(namesIn(list)).toEqual([...REFUSALS]);
});

test("each reason has its rule", () => {
  const rules = [...page.matchAll(/^\| \d+ \|.*\| `(\w+)` \|$/gm)].map(([, reason]) => reason);
  // The reason `proof_nonce` is left out, because only the service demands nonces.
  const proofRefusals = PROOF_REFUSALS.filter((reason) => reason !== "proof_nonce");
  expect(new Set(rules)).toEqual(new Set([...REFUSALS, ...proofRefusals]));
});

test("it names every member of the vectors", () => {
  const named = namesIn(firstCells(sectionOf("Vectors")).join(" "));
  expect(named.toSorted()).toEqual(
    [...new Set([file, ...file.cases].flatMap(Object.keys))].toSorted().concat("options", "keys").toSorted(),
  );
  expect(page).toContain(`| \`version\` | ${VERSION}. `);
  const options = [...new Set(file.cases.flatMap(({ options }) => Object.keys(options ?? {})))];
  for (const option of options) expect(page).toContain(`\`${option}\``);
});

test("it names every field of a batch that the vectors have", () => {
  const named = namesIn(firstCells(sectionOf("Feed")).join(" "));
  const fields = new Set(file.cases.flatMap(({ feed = [] }) => feed.flatMap(({ batch }) => Object.keys(batch))));
  expect(named.toSorted()).toEqual([...fields].toSorted());
});

/** The vectors that verifiers in every language are tested with (docs/reference/verifier-protocol.md). */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createVerifier, PROOF_REFUSALS, REFUSALS } from "../../src/verifier/index.ts";
import * as web from "../../src/verifier/web/index.ts";
import { signedTexts, type VectorFile } from "./format.ts";
import { runCase } from "./run.ts";
import { createVectors, writeVectors } from "./vectors.ts";

const text = readFileSync(join(import.meta.dirname, "verifier.json"), "utf8");
const file: VectorFile = JSON.parse(text);

describe.each([
  ["of Node", createVerifier],
  ["of all other runtimes", web.createVerifier],
])("the TypeScript verifier %s", (_, create) => {
  test.each(file.cases)("$name", async (one) => {
    const verdict = await runCase(create, file, one);
    expect(verdict.ok ? "accepted" : verdict.reason).toBe(one.verdict);
    if (verdict.ok && one.claims !== undefined) expect(JSON.parse(JSON.stringify(verdict.claims))).toEqual(one.claims);
  });
});

test("every verdict is in the vectors", () => {
  // The reason `proof_nonce` is left out, because only the service demands nonces.
  const proofRefusals = PROOF_REFUSALS.filter((reason) => reason !== "proof_nonce");
  const expected = new Set(["accepted", ...REFUSALS, ...proofRefusals]);
  expect(new Set(file.cases.map(({ verdict }) => verdict))).toEqual(expected);
});

test("every case has its name", () => {
  const names = file.cases.map(({ name }) => name);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
});

test("the file is what `npm run vectors` writes", () => {
  expect(writeVectors(createVectors(signedTexts(file.cases)))).toBe(text);
});

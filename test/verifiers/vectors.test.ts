/** The verifiers in other languages give the verdicts of the vectors. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { LANGUAGES, runVectors } from "../support/verifier/languages.ts";
import type { VectorFile } from "../vectors/format.ts";

const PATH = join(import.meta.dirname, "../vectors/verifier.json");
const { cases }: VectorFile = JSON.parse(readFileSync(PATH, "utf8"));

describe.each(LANGUAGES)("$name", ({ build }) => {
  test("has the verdict and the claims of every case", async () => {
    const results = await runVectors(await build(), PATH);
    const expected = cases.map(({ name, verdict, claims }) => ({ name, verdict, claims }));
    const found = cases.map(({ name, claims }, index) => ({
      name,
      verdict: results[index]?.verdict,
      // JSON.stringify writes -0 as 0. Other claims that it cannot express are not in the vectors.
      claims: claims && JSON.parse(JSON.stringify(results[index]?.claims ?? null)),
    }));
    expect(found).toEqual(expected);
  });
});

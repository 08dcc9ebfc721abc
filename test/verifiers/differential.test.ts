/**
 * Random tokens in every verifier: all of them have the same verdict, reason and claims.
 *
 * `npm run test:differential` runs 100,000 tokens; SEED repeats a run.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createVerifier } from "../../src/verifier/index.ts";
import { createVerifier as createWebVerifier } from "../../src/verifier/web/index.ts";
import { Random } from "../http/roundtrip/random.ts";
import { scratch } from "../support/service.ts";
import { LANGUAGES, type Result, runVectors } from "../support/verifier/languages.ts";
import { NOW_MS, type VectorFile } from "../vectors/format.ts";
import { createSign } from "../vectors/keys.ts";
import { createMutations } from "../vectors/mutations.ts";

const COUNT = process.env.DIFFERENTIAL === "long" ? 100_000 : 1000;
const SEED = Number(process.env.SEED ?? (COUNT > 1000 ? Date.now() % 2 ** 31 : 1));
const BATCH = 5000;

const file: VectorFile = JSON.parse(readFileSync(join(import.meta.dirname, "../vectors/verifier.json"), "utf8"));

type Run = (tokens: readonly string[]) => Promise<Result[]>;

/** A verifier in this process. */
async function runHere(create: typeof createVerifier): Promise<Run> {
  const verifier = create({
    ...{ ...file.options, jwksUrl: "http://127.0.0.1/jwks", clock: () => NOW_MS, monotonic: () => 0 },
    fetch: async () => Response.json(file.keys),
  });
  await verifier.ready;
  return async (tokens) => {
    const verdicts = [];
    for (const token of tokens) verdicts.push(await verifier.verify(token));
    return verdicts.map((verdict) =>
      verdict.ok ? { verdict: "accepted", claims: verdict.claims } : { verdict: verdict.reason },
    );
  };
}

/** A verifier in another language. */
async function runIn({ build }: (typeof LANGUAGES)[number]): Promise<Run> {
  const command = await build();
  const path = join(scratch(), "mutations.json");
  return (tokens) => {
    const cases = tokens.map((token) => ({ name: "a mutation", token, nowMs: NOW_MS, verdict: "malformed" }));
    writeFileSync(path, JSON.stringify({ ...file, cases }));
    return runVectors(command, path);
  };
}

test(`${COUNT} random tokens have the same verdicts in every verifier (SEED=${SEED})`, async () => {
  const reference = await runHere(createVerifier);
  const others: (readonly [name: string, Run])[] = [["WebCrypto", await runHere(createWebVerifier)]];
  for (const language of LANGUAGES) others.push([language.name, await runIn(language)]);
  const mutate = createMutations(new Random(SEED), createSign([]), file.cases);
  const seen = new Map<string, number>();
  for (let done = 0; done < COUNT; done += BATCH) {
    const tokens = Array.from({ length: Math.min(BATCH, COUNT - done) }, mutate);
    const expected = await reference(tokens);
    for (const { verdict } of expected) seen.set(verdict, (seen.get(verdict) ?? 0) + 1);
    for (const [name, run] of others) {
      const found = await run(tokens);
      const pairs = tokens.map((token, index) => ({ token, expected: expected[index], found: found[index] }));
      // A number that is infinite is null in JSON.
      const differing = pairs.filter((pair) => JSON.stringify(pair.expected) !== JSON.stringify(pair.found));
      expect(differing, `${name} differs`).toEqual([]);
    }
  }
  // Mutations that are all malformed, or all accepted, would compare nothing.
  for (const verdict of ["accepted", "malformed", "forged", "wrong_issuer", "not_bearer", "expired"]) {
    expect(seen.get(verdict) ?? 0, verdict).toBeGreaterThan(COUNT / 500);
  }
});

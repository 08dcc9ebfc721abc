/**
 * Random tokens, half of them with random proofs, have the same verdict, reason and claims in every verifier.
 *
 * `npm run test:differential` runs 100,000 of them; SEED repeats a run.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { createVerifier, PROOF_REFUSALS } from "../../src/verifier/index.ts";
import { createVerifier as createWebVerifier } from "../../src/verifier/web/index.ts";
import { Random } from "../connect-http-routes/roundtrip/random.ts";
import { scratch } from "../support/service.ts";
import { LANGUAGES, type Result, runVectors } from "../support/verifier/languages.ts";
import { createForge, NOW_MS, SID, type VectorCase, type VectorFile } from "../vectors/format.ts";
import { createSign } from "../vectors/keys.ts";
import { createMutations } from "../vectors/mutations.ts";
import { createProofMutations } from "../vectors/proof-mutations.ts";
import { createProver } from "../vectors/prover.ts";
import { runCase, verdictOf } from "../vectors/run.ts";

const COUNT = process.env.DIFFERENTIAL === "long" ? 100_000 : 1000;
const SEED = Number(process.env.SEED ?? (COUNT > 1000 ? Date.now() % 2 ** 31 : 1));
const BATCH = 5000;
/** How many random feeds are compared. Each needs a verifier of its own. */
const FEEDS = Math.min(COUNT / 5, 5000);
/** The reasons for refusing proofs that random changes cause often. */
const PROVEN = PROOF_REFUSALS.filter((reason) => reason !== "proof_nonce");

const file: VectorFile = JSON.parse(readFileSync(join(import.meta.dirname, "../vectors/verifier.json"), "utf8"));

type Mutation = Pick<VectorCase, "token" | "requests">;
type Run = (mutations: readonly Mutation[]) => Promise<Result[]>;

/**
 * Returns a function that runs a verifier in this process. Verifiers remember proofs, so each batch of tokens gets a new verifier, as in
 * the other languages.
 */
function runHere(create: typeof createVerifier): Run {
  return async (mutations) => {
    const verifier = create({
      ...{ ...file.options, jwksUrl: "http://127.0.0.1/jwks", clock: () => NOW_MS, monotonic: () => 0 },
      fetch: async () => Response.json(file.keys),
    });
    await verifier.ready;
    const results: Result[] = [];
    for (const mutation of mutations) {
      const verdict = await verdictOf(verifier, mutation);
      results.push(verdict.ok ? { verdict: "accepted", claims: verdict.claims } : { verdict: verdict.reason });
    }
    verifier.close();
    return results;
  };
}

/** Runs a verifier in another language. */
async function runIn({ build }: (typeof LANGUAGES)[number]): Promise<Run> {
  const command = await build();
  const path = join(scratch(), "mutations.json");
  return (mutations) => {
    const cases = mutations.map((mutation) => ({
      name: "a mutation",
      ...mutation,
      nowMs: NOW_MS,
      verdict: "malformed",
    }));
    writeFileSync(path, JSON.stringify({ ...file, cases }));
    return runVectors(command, path);
  };
}

test(`${COUNT} random tokens have the same verdicts in every verifier (SEED=${SEED})`, async () => {
  const reference = runHere(createVerifier);
  const others: (readonly [name: string, Run])[] = [["WebCrypto", runHere(createWebVerifier)]];
  for (const language of LANGUAGES) others.push([language.name, await runIn(language)]);
  const [random, sign] = [new Random(SEED), createSign([])];
  const mutateToken = createMutations(random, sign, file.cases);
  const mutateProof = createProofMutations(random, createProver(sign, createForge(sign)), file.cases);
  const mutate = () => (random.chance(0.5) ? mutateProof() : { token: mutateToken() });
  const seen = new Map<string, number>();
  for (let done = 0; done < COUNT; done += BATCH) {
    const mutations: readonly Mutation[] = Array.from({ length: Math.min(BATCH, COUNT - done) }, mutate);
    const expected = await reference(mutations);
    for (const { verdict } of expected) seen.set(verdict, (seen.get(verdict) ?? 0) + 1);
    for (const [name, run] of others) {
      const found = await run(mutations);
      const pairs = mutations.map((mutation, index) => ({
        ...mutation,
        expected: expected[index],
        found: found[index],
      }));
      // The results are compared as JSON, because in the output of other languages an infinite number is null.
      const differing = pairs.filter((pair) => JSON.stringify(pair.expected) !== JSON.stringify(pair.found));
      expect(differing, `${name} differs`).toEqual([]);
    }
  }
  // Each of these verdicts must occur often, because otherwise the comparison would show little.
  for (const verdict of ["accepted", "malformed", "forged", "wrong_issuer", "not_bearer", "expired", ...PROVEN]) {
    expect(seen.get(verdict) ?? 0, verdict).toBeGreaterThan(COUNT / 2000);
  }
  if (COUNT > 1000) console.log(Object.fromEntries([...seen].toSorted(([, one], [, other]) => other - one)));
});

test(`${FEEDS} random feeds have the same verdicts in every verifier (SEED=${SEED})`, async () => {
  const [random, sign] = [new Random(SEED), createSign([])];
  const { token } = createForge(sign);
  const time = (ms: number) => new Date(NOW_MS + ms).toISOString();
  const some = <T>(most: number, create: () => T) => Array.from({ length: random.below(most + 1) }, create);
  const entry = () => ({
    sessionId: random.pick([SID, SID, "x"]),
    ...(random.chance(0.9) && { expireTime: time(random.below(120_000) - 60_000) }),
  });
  const batch = (): JsonObject => ({
    ...{ cursor: "1", caughtUp: random.chance(0.9) },
    staleTokens: some(2, () => ({ ...entry(), minVersion: random.below(4) })),
    revocations: random.chance(0.1) ? some(1, () => ({ ...entry(), reason: random.pick(["logout", "expired"]) })) : [],
  });
  const cases = Array.from({ length: FEEDS }, (): VectorCase => {
    // The clock of the store is off by some time, and no batch is late.
    const offsetMs = random.below(80_000) - 40_000;
    const feed = [0, ...some(4, () => random.below(30_000))]
      .sort((one, other) => other - one)
      .map((agoMs) => ({ atMs: NOW_MS - agoMs, batch: { ...batch(), asOfTime: time(offsetMs - agoMs) } }));
    const sv = random.pick([undefined, 0, 1, 2, 3]);
    return { name: "a feed", token: token({}, { sv }), nowMs: NOW_MS, feed, verdict: "malformed" };
  });
  const path = join(scratch(), "feeds.json");
  writeFileSync(path, JSON.stringify({ ...file, cases }));
  const found: (readonly [name: string, verdicts: readonly string[]])[] = [];
  for (const [name, create] of [["Node", createVerifier] as const, ["WebCrypto", createWebVerifier] as const]) {
    const verdicts: string[] = [];
    for (const one of cases) {
      const verdict = await runCase(create, file, one);
      verdicts.push(verdict.ok ? "accepted" : verdict.reason);
    }
    found.push([name, verdicts]);
  }
  for (const { name, build } of LANGUAGES) {
    found.push([name, (await runVectors(await build(), path)).map(({ verdict }) => verdict)]);
  }
  const [[, expected] = ["", []]] = found;
  for (const [name, verdicts] of found) {
    const differing = cases.filter((_, at) => verdicts[at] !== expected[at]);
    expect(differing, `${name} differs`).toEqual([]);
  }
  for (const verdict of ["accepted", "stale", "revoked"]) {
    expect(expected.filter((each) => each === verdict).length, verdict).toBeGreaterThan(FEEDS / 50);
  }
});

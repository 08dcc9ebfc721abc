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
import { createSign, EDWARDS, MAIN } from "../vectors/keys.ts";
import { ALPHABET, changeSome, createMutations, VALUES } from "../vectors/mutations.ts";
import { createProofMutations } from "../vectors/proof-mutations.ts";
import { createProver } from "../vectors/prover.ts";
import { RSA_JWK } from "../vectors/rsa-key.ts";
import { runCase, verdictOf } from "../vectors/run.ts";

const COUNT = process.env.DIFFERENTIAL === "long" ? 100_000 : 1000;
const SEED = Number(process.env.SEED ?? (COUNT > 1000 ? Date.now() % 2 ** 31 : 1));
const BATCH = 5000;
/** How many random feeds are compared. Each needs a verifier of its own. */
const FEEDS = Math.min(COUNT / 5, 5000);
/** The reasons for refusing proofs that random changes cause often. */
const PROVEN = PROOF_REFUSALS.filter((reason) => reason !== "proof_nonce");

/** When sessions of random feeds were created, in ms. */
const CREATED_MS = [NOW_MS - 60_000, NOW_MS - 59_999.5, NOW_MS, 0, -1];
const RSA_PUBLIC = { kty: RSA_JWK.kty, n: RSA_JWK.n, e: RSA_JWK.e, alg: "RS256" } as JsonObject;

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
  /** Some times have digits below a millisecond, which are rounded. */
  const time = (ms: number) =>
    new Date(NOW_MS + ms)
      .toISOString()
      .replace("Z", `${random.pick(["", "", "4", "5", "499999", "500000", "999999"])}Z`);
  const some = <T>(most: number, create: () => T) => Array.from({ length: random.below(most + 1) }, create);
  const entry = () => ({
    sessionId: random.pick([SID, SID, "x"]),
    ...(random.chance(0.9) && { expireTime: time(random.below(120_000) - 60_000) }),
  });
  const batch = (): JsonObject => ({
    ...{ cursor: "1", caughtUp: random.chance(0.9) },
    ...(random.chance(0.2) && { revokedUntilTime: time(random.pick(CREATED_MS) - NOW_MS - random.below(3)) }),
    ...(random.chance(0.05) && { revokedKeyIds: [random.pick([MAIN.kid, "another"])] }),
    staleTokens: some(2, () => ({ ...entry(), minVersion: random.below(4) })),
    revocations: random.chance(0.1) ? some(1, () => ({ ...entry(), reason: random.pick(["logout", "expired"]) })) : [],
  });
  const cases = Array.from({ length: FEEDS }, (): VectorCase => {
    // The clock of the store is off by some time. No batch is so late that its stream would be replaced.
    const offsetMs = random.below(80_000) - 40_000;
    const feed = [0, ...some(4, () => random.below(30_000))]
      .sort((one, other) => other - one)
      .map((agoMs) => {
        const lateMs = random.chance(0.5) ? random.below(2900) : 0;
        const asOfTime = time(offsetMs - agoMs - lateMs);
        return { atMs: NOW_MS - agoMs, batch: { ...batch(), ...(random.chance(0.9) && { asOfTime }) } };
      });
    const sv = random.pick([undefined, undefined, 0, 1, 2, 3]);
    const sct = random.pick([undefined, null, "0", 1e300, -1e300, ...CREATED_MS]);
    const nowMs = NOW_MS + (random.chance(0.3) ? random.below(9000) : 0);
    return { name: "a feed", token: token({}, { sv, sct }), nowMs, feed, verdict: "malformed" };
  });
  await expectAgreement(cases, ["accepted", "stale", "revoked", "revoked_key", "unavailable"]);
});

test(`${FEEDS} random key sets have the same verdicts in every verifier (SEED=${SEED})`, async () => {
  const [random, sign] = [new Random(SEED), createSign([])];
  const { token } = createForge(sign);
  const known = [...(file.keys as { keys: JsonObject[] }).keys, { ...RSA_PUBLIC, kid: "rsa" }];
  const names = ["kty", "crv", "x", "y", "n", "e", "kid", "alg", "use", "key_ops", "token_types", "d", "x5c"];
  const texts = known.flatMap((key) => Object.values(key)).filter((value) => typeof value === "string");
  const values = [...VALUES, ...texts, "sig", "enc", "verify", ["verify"], ["sign"], ["at+jwt"], ["secevent+jwt"]];
  const pieces = [...ALPHABET, "=", "+", "/", " ", "\n", "é"];
  function key(): unknown {
    if (random.chance(0.05)) return random.pick(VALUES);
    const members: Record<string, unknown> = { ...random.pick(known) };
    if (random.chance(0.4)) members.kid = MAIN.kid;
    for (let times = random.below(3); times > 0; times--) {
      const name = random.pick(names);
      const kind = random.next();
      if (kind < 0.2) delete members[name];
      else if (kind < 0.5) members[name] = changeSome(random, String(members[name] ?? ""), pieces);
      else members[name] = random.pick(values);
    }
    return members;
  }
  const cases = Array.from({ length: FEEDS }, (): VectorCase => {
    const count = random.chance(0.05) ? 99 + random.below(3) : 1 + random.below(4);
    const keys = random.chance(0.02) ? random.pick(VALUES) : { keys: Array.from({ length: count }, key) };
    const by = random.pick([MAIN, MAIN, MAIN, EDWARDS]);
    const header = { alg: by.alg, kid: random.chance(0.9) ? MAIN.kid : by.kid };
    return { name: "a key set", token: token(header, {}, by), nowMs: NOW_MS, keys, verdict: "malformed" };
  });
  await expectAgreement(cases, ["accepted", "forged", "wrong_algorithm", "unknown_key", "unavailable"]);
});

/** Runs the cases in every verifier. Each of the named verdicts has to occur, because otherwise the comparison would show little. */
async function expectAgreement(cases: readonly VectorCase[], wanted: readonly string[]): Promise<void> {
  const path = join(scratch(), "cases.json");
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
    const differing = cases.flatMap((one, at) =>
      verdicts[at] === expected[at] ? [] : [{ one, expected: expected[at], found: verdicts[at] }],
    );
    expect(differing, `${name} differs`).toEqual([]);
  }
  for (const verdict of wanted) {
    expect(expected.filter((each) => each === verdict).length, verdict).toBeGreaterThan(FEEDS / 100);
  }
}

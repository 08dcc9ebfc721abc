/**
 * Measures how fast tokens are verified, in comparison with the platform's bare signature check in the same run.
 *
 *   npm run bench:verify
 */
import { createPublicKey, verify } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { create } from "@bufbuild/protobuf";
import { createRouterTransport } from "@connectrpc/connect";
import { SessionAdminService, WatchRevocationsResponseSchema } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import { later, storeMs } from "../../src/service/session/time.ts";
import { createAccessTokens } from "../../src/service/tokens/access-token.ts";
import { generateRing } from "../../src/service/tokens/generate-key.ts";
import { readyKeys } from "../../src/service/tokens/keys.ts";
import { createRandom, systemEntropy } from "../../src/service/tokens/random.ts";
import { createVerifier } from "../../src/verifier/index.ts";
import { median } from "../support/median.ts";
import { machine, table } from "./machine.ts";

const ROUNDS = 9;
const NEW_TOKENS = 4000;
const TURN = 200;
const KNOWN_TOKENS = 1000;
const KNOWN_CALLS = 1_000_000;
const REVOKED = 10_000;

const entropy = systemEntropy();
const random = createRandom(entropy);
const now = storeMs(Date.now());
const year = 365 * 86_400_000;
const [issuer, audience] = ["https://auth.example", "https://api.example"];
const keys = { current: readyKeys(generateRing("ES256", now)) };
const tokens = createAccessTokens({
  keys,
  issuer,
  ttlMs: 3_600_000,
  entropy,
  time: { now: () => now, shiftMs: () => 0 },
});

function mint(): string {
  const [idleExpiresAt, absoluteExpiresAt] = [later(now, year), later(now, year)];
  const session = {
    sid: random.sessionId("user"),
    subject: "user",
    clientId: "app",
    audience,
    claims: '{"scope":"read write"}',
  };
  const times = { createdAt: now, lastRefreshedAt: now, idleTimeoutMs: year, absoluteLifetimeMs: year };
  const client = { userAgent: "", ipAddress: "", displayName: "" };
  return tokens.issue({ ...session, ...times, client, idleExpiresAt, absoluteExpiresAt }, now).token;
}

/** An issuer with as many revoked sessions as a busy service has, so that the verifier checks tokens against a list of realistic size. */
const transport = createRouterTransport(({ service }) => {
  service(SessionAdminService, {
    async *watchRevocations() {
      const revocations = Array.from({ length: REVOKED }, () => ({ sessionId: random.sessionId("other") }));
      yield create(WatchRevocationsResponseSchema, { revocations, cursor: "1", caughtUp: true });
      while (true) {
        await new Promise((resolve) => setTimeout(resolve, 500));
        yield create(WatchRevocationsResponseSchema, { cursor: "1", caughtUp: true });
      }
    },
  });
});
const jwks = createServer((_, response) => response.end(JSON.stringify(keys.current.jwks))).listen(0, "127.0.0.1");
await new Promise((resolve) => jwks.once("listening", resolve));
const jwksUrl = `http://127.0.0.1:${(jwks.address() as AddressInfo).port}`;
// A round of this benchmark blocks the event loop, so the verifier cannot read its feed. The high `maxStalenessMs` keeps the feed from
// counting as stale; all other checks are made as usual.
const verifier = createVerifier({ transport, jwksUrl, issuer, audience, policy: "refuse", maxStalenessMs: 600_000 });
await verifier.ready;

/** Makes a copy of the token, because each request brings a string of its own. */
const arriving = (token: string): string => Buffer.from(token).toString("latin1");

/** Returns how many seconds some work takes. */
async function time(work: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}

async function verifyAll(list: readonly string[], times: number): Promise<void> {
  for (let round = 0; round < times; round += 1) {
    for (const token of list) if (!(await verifier.verify(token)).ok) throw new Error("a good token was refused");
  }
}

const [jwk] = keys.current.jwks.keys;
const publicKey = createPublicKey({ key: jwk ?? {}, format: "jwk" });
const options = { key: publicKey, dsaEncoding: "ieee-p1363" } as const;

async function verifyBare(list: readonly (readonly [Buffer, Buffer])[]): Promise<void> {
  for (const [input, signature] of list) if (!verify("sha256", input, options, signature)) throw new Error("bad");
}

const figures = {
  bare: [] as number[],
  fresh: [] as number[],
  ratio: [] as number[],
  known: [] as number[],
  arriving: [] as number[],
};
for (let round = 0; round <= ROUNDS; round += 1) {
  const minted = Array.from({ length: NEW_TOKENS }, mint).map(arriving);
  let [bare, fresh] = [0, 0];
  // The verifier and the bare check take short turns, so that both run under the same conditions.
  for (let at = 0; at < NEW_TOKENS; at += TURN) {
    const turn = minted.slice(at, at + TURN);
    const parts = turn.map((token) => {
      const end = token.lastIndexOf(".");
      return [Buffer.from(token.slice(0, end)), Buffer.from(token.slice(end + 1), "base64url")] as const;
    });
    bare += await time(() => verifyBare(parts));
    fresh += await time(() => verifyAll(turn, 1));
  }
  const known = minted.slice(0, KNOWN_TOKENS);
  await verifyAll(known, 1);
  const knownTime = await time(() => verifyAll(known, KNOWN_CALLS / KNOWN_TOKENS));
  // A real server gets a token as a new string with each request. A cache lookup must first compute the hash of that string.
  const arrived = Array.from({ length: 20 }, () => known.map(arriving)).flat();
  const arrivingTime = await time(() => verifyAll(arrived, 1));
  if (round === 0) continue; // The first round only warms up the code, and is not counted.
  figures.bare.push(NEW_TOKENS / bare);
  figures.fresh.push(NEW_TOKENS / fresh);
  figures.ratio.push(bare / fresh);
  figures.known.push(KNOWN_CALLS / knownTime);
  figures.arriving.push(arrived.length / arrivingTime);
}

const row = (name: string, list: readonly number[], share = "") => [
  name,
  Math.round(median(list)).toLocaleString("en"),
  share,
];
const rows = [
  row("bare `crypto.verify`", figures.bare, "1"),
  row("a new token", figures.fresh, median(figures.ratio).toFixed(2)),
  row("a token seen before", figures.known),
  row("the same, as a new string", figures.arriving),
];
const title = `one core, ES256, ${REVOKED.toLocaleString("en")} revoked sessions`;
console.log(`${table([title, "a second", "of bare"], rows)}\n\n${machine()}`);
verifier.close();
jwks.close();

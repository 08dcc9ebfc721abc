/** Makes the test vectors of a verifier: tokens, keys, batches of the feed, times and verdicts. */
import type { DeviceKeyBinding } from "../../src/service/session/devices/key.ts";
import type { Audience, Session } from "../../src/service/session/model.ts";
import { parseSessionId } from "../../src/service/session/model.ts";
import { storeMs } from "../../src/service/session/time.ts";
import { createAccessTokens } from "../../src/service/tokens/access-token.ts";
import { headerSegment } from "../../src/service/tokens/jws.ts";
import { claimsCases } from "./claims-cases.ts";
import { encodingCases } from "./encoding-cases.ts";
import { feedCases } from "./feed-cases.ts";
import { AUDIENCE, createForge, ISSUER, NOW_MS, SID, VERSION, type VectorCase, type VectorFile } from "./format.ts";
import { headerCases } from "./header-cases.ts";
import { keyCases } from "./key-cases.ts";
import { createSign, EDWARDS, JWKS, MAIN, type Sign, type VectorKey } from "./keys.ts";
import { proofCases } from "./proof-cases.ts";
import { proofKeyCases } from "./proof-key-cases.ts";
import { proofUrlCases } from "./proof-url-cases.ts";
import { createProver } from "./prover.ts";
import { rsaCases } from "./rsa-cases.ts";
import { smallOrderCases } from "./small-order-cases.ts";
import { staleCases } from "./stale-cases.ts";

/** @param knownTokens tokens and proofs whose signatures are used again, so that unchanged cases keep their bytes */
export function createVectors(knownTokens: readonly string[]): VectorFile {
  const sign = createSign(knownTokens);
  const forge = createForge(sign);
  const prover = createProver(sign, forge);
  const cases = [
    ...serviceCases(sign),
    ...[headerCases, claimsCases, encodingCases, keyCases, feedCases, staleCases, rsaCases].flatMap((create) =>
      create(forge),
    ),
    ...[proofCases, proofKeyCases, proofUrlCases, smallOrderCases].flatMap((create) => create(prover)),
  ];
  return {
    version: VERSION,
    options: { issuer: ISSUER, audience: AUDIENCE },
    keys: JWKS,
    cases: cases.map(withClaims),
  };
}

/** Adds the claims of an accepted token, unless they contain a number that JSON cannot express. */
function withClaims(one: VectorCase): VectorCase {
  if (one.verdict !== "accepted") return one;
  const payload = Buffer.from(one.token.split(".")[1] ?? "", "base64url").toString();
  const claims = JSON.parse(payload);
  const isExpressible = !/\d{400}|e-?\d{3,}/i.test(payload);
  return isExpressible && payload.length < 4096 ? { ...one, claims } : one;
}

/** Returns tokens that were made by the service's own code. */
function serviceCases(sign: Sign): VectorCase[] {
  const day = 86_400_000;
  const session: Session = {
    sid: parseSessionId(SID) as NonNullable<ReturnType<typeof parseSessionId>>,
    subject: "user-1",
    clientId: "app",
    audience: AUDIENCE,
    claims: "{}",
    client: { userAgent: "", ipAddress: "", displayName: "" },
    idleTimeoutMs: day,
    absoluteLifetimeMs: day,
    createdAt: storeMs(NOW_MS - 60_000),
    lastRefreshedAt: storeMs(NOW_MS),
    idleExpiresAt: storeMs(NOW_MS + day),
    absoluteExpiresAt: storeMs(NOW_MS + day),
  };
  const tokensOf = (key: VectorKey) => {
    const header = headerSegment(key.alg, key.kid);
    const signing = { kid: key.kid, header, sign: (input: string) => sign(input, key) };
    const entropy = { text: () => "AAAAAAAAAAAAAAAAAAAAAA", fraction: () => 0 };
    const time = { now: () => storeMs(NOW_MS), shiftMs: () => 0 };
    const keys = { current: { signing, checks: new Map() } };
    return createAccessTokens({ keys, issuer: ISSUER, ttlMs: 300_000, entropy, time });
  };
  const issue = (key: VectorKey, changes: Partial<Session> = {}, deviceProven = false) =>
    tokensOf(key).issue({ ...session, ...changes }, storeMs(NOW_MS), deviceProven).token;
  /** Exchanges a token for one for this service alone, with which an agent acts for the user. */
  const exchange = (token: string) => {
    const all = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
    return tokensOf(MAIN).narrow({ ...all, all }, storeMs(NOW_MS), {
      ...{ audience: AUDIENCE, clientId: "agent", claims: ["role"], act: { sub: "agent-1" }, cnf: undefined },
      endsAt: storeMs(NOW_MS + 60_000),
    }).token;
  };
  const device: DeviceKeyBinding = {
    key: { algorithm: "ES256", bytes: new Uint8Array(64), thumbprint: new Uint8Array(32) },
    ...{ state: "bound", since: storeMs(NOW_MS) },
  };
  const several: Audience = ["https://other.example", AUDIENCE];
  const claims = '{"role":"admin","groups":["a","b"]}';
  const accepted = (name: string, token: string): VectorCase => ({
    ...{ name: `of the service: ${name}`, token, nowMs: NOW_MS, verdict: "accepted" },
  });
  return [
    accepted("ES256", issue(MAIN)),
    accepted("EdDSA", issue(EDWARDS)),
    accepted("two audiences", issue(MAIN, { audience: several })),
    accepted("with claims of its own", issue(MAIN, { claims })),
    accepted("with a device key", issue(MAIN, { device }, true)),
    accepted("after a change of the session", issue(MAIN, { claims, version: 3 })),
    accepted("exchanged", exchange(issue(MAIN, { audience: several, claims, version: 3 }))),
    accepted("a subject in another script", issue(MAIN, { subject: 'Ωμέγα "🎉"' })),
  ];
}

/** Creates the text of the file: one line for each case. */
export function writeVectors({ cases, ...rest }: VectorFile): string {
  const head = JSON.stringify(rest, null, 2).slice(0, -2);
  return `${head},\n  "cases": [\n${cases.map((one) => `    ${JSON.stringify(one)}`).join(",\n")}\n  ]\n}\n`;
}

/** The contract with deployed verifiers: released rules stay valid for every later verifier and service. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { decodeProtectedHeader } from "jose";
import { expect, onTestFinished, test } from "vitest";
import { AccessTokenPolicy } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import { startService } from "../support/service.ts";
import { admin, bearer, cookie, type LoggedIn, logIn, message, openAdmin } from "../support/sessions.ts";
import { untilTrue } from "../support/until.ts";
import { VERSION, type VectorFile } from "../vectors/format.ts";
import { type Expected1, Feed1, followFeed1, verdict1 } from "../vectors/frozen/verifier-1.ts";

const VECTORS = join(import.meta.dirname, "../vectors");
const read = (path: string): VectorFile => JSON.parse(readFileSync(join(VECTORS, path), "utf8"));
const current = read("verifier.json");
const versions = readdirSync(join(VECTORS, "frozen")).filter((name) => name.endsWith(".json"));

test("each version of the vectors is kept, up to that of today", () => {
  expect(versions.toSorted()).toEqual(Array.from({ length: VERSION }, (_, index) => `${index + 1}.json`));
});

// vectors.test.ts runs today's vectors in all verifiers. If these contain the frozen ones, all verifiers pass those as well.
test.each(versions)("the vectors of today contain those of frozen/%s, with their verdicts", (name) => {
  const { version, options, keys, cases } = read(`frozen/${name}`);
  expect(`${version}.json`).toBe(name);
  expect({ options: current.options, keys: current.keys }).toEqual({ options, keys });
  const today = new Map(current.cases.map((one) => [one.name, one]));
  for (const one of cases) expect(today.get(one.name), one.name).toEqual(one);
});

const REFRESH = AccessTokenPolicy.REFRESH;
const ISSUER = "https://auth.example";
const AUDIENCE = "https://api.example";

test.each(["ES256", "EdDSA"])("a verifier of version 1 follows the service of today: tokens of %s", async (alg) => {
  const service = await startService({ ISSUER, AUDIENCE, SIGNING_ALGORITHM: alg });
  onTestFinished(async () => void (await service.kill9()));
  const closing = new AbortController();
  onTestFinished(() => closing.abort());
  const feed = new Feed1();
  followFeed1(feed, service.adminUrl, service.adminToken, closing.signal).catch(() => {});
  const [first, second] = [await logIn(service), await logIn(service, { claims: { role: "admin" } })];
  const { keys } = (await (await fetch(`${service.adminUrl}/.well-known/jwks.json`)).json()) as Pick<Expected1, "keys">;
  const verdictOf = ({ accessToken }: LoggedIn) =>
    verdict1(accessToken, { issuer: ISSUER, audience: AUDIENCE, keys }, feed);
  expect(decodeProtectedHeader(first.accessToken).alg).toBe(alg);
  await untilTrue(() => feed.isComplete);
  expect([verdictOf(first), verdictOf(second)]).toEqual(["accepted", "accepted"]);
  // It does not know of marks: it accepts tokens from before a change until they expire, and those of a later version.
  const update = { sessionId: second.sid, claims: { role: "user" }, accessTokens: REFRESH };
  message(await openAdmin(service).call(admin.updateSession, update, bearer(service.adminToken)));
  const refreshed = await fetch(`${service.publicUrl}/v1/auth/refresh`, {
    method: "POST",
    headers: cookie(second.refreshToken),
  });
  const { data } = (await refreshed.json()) as { data: { accessToken: string } };
  expect(verdictOf({ ...second, ...data })).toBe("accepted");
  const headers = bearer(first.accessToken);
  expect((await fetch(`${service.publicUrl}/v1/auth/logout`, { method: "DELETE", headers })).status).toBe(200);
  await untilTrue(() => verdictOf(first) === "revoked");
  expect(verdictOf(second)).toBe("accepted");
  message(await openAdmin(service).call(admin.revokeAllSessions, {}, bearer(service.adminToken)));
  await untilTrue(() => verdictOf(second) === "revoked");
  expect(verdictOf(await logIn(service))).toBe("accepted");
});

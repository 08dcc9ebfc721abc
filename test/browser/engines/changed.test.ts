/** A session that changes while pages of it are open: the API refuses its old tokens, and the pages go on with what is true now. */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { AccessTokenPolicy } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { createVerifier, type Verifier } from "../../../src/verifier/index.ts";
import { admin, bearer, message, openAdmin } from "../../support/sessions.ts";
import { type ChromiumEngine, startChromium } from "./driver.ts";
import { type Origin, startOrigin } from "./origin.ts";
import { callApi, eventually, isToken, openPage, signIn, statesOf, tokenOf } from "./pages.ts";

let origin: Origin;
let engine: ChromiumEngine;
let verifier: Verifier;
beforeAll(async () => {
  origin = await startOrigin();
  engine = await startChromium(origin.authority);
  const { publicUrl, adminUrl, adminToken } = origin.service;
  verifier = createVerifier({ adminUrl, adminToken, issuer: publicUrl, audience: publicUrl, policy: "refuse" });
  await verifier.ready;
  origin.refuseTokens = async (token) => !(await verifier.verify(token)).ok;
});
afterAll(async () => {
  verifier?.close();
  await engine?.close();
  await origin?.stop();
});
afterEach(() => engine.reset());

test("a page with the kit sees the new role without a reload, and so do all tabs; nobody is signed out", async () => {
  await signIn(engine, origin);
  const [tab, other] = [await openPage(engine, origin), await openPage(engine, origin)];
  const sessionId = await tab.evaluate<string>("session.accessToken().then(() => session.snapshot.claims.sid)");
  expect(await tokenOf(other)).toSatisfy(isToken);
  const roleIn = (of: typeof tab) => of.evaluate<string | null>("session.snapshot.claims.role ?? null");
  await tab.evaluate("globalThis.isSamePage = true");
  origin.refreshes = 0;
  for (const [at, role] of ["admin", "user", "owner"].entries()) {
    origin.apiCalls.length = 0;
    const before = await tokenOf(tab);
    const update = { sessionId, claims: { role }, accessTokens: AccessTokenPolicy.REFRESH };
    message(await openAdmin(origin.service).call(admin.updateSession, update, bearer(origin.service.adminToken)));
    await eventually(
      () => verifier.verify(before),
      (verdict) => !verdict.ok && verdict.reason === "stale",
    );
    expect(await callApi(tab)).toBe(200);
    expect(await roleIn(tab)).toBe(role);
    await eventually(
      () => roleIn(other),
      (found) => found === role,
    );
    expect(await callApi(other)).toBe(200);
    expect([origin.apiCalls, origin.refreshes]).toEqual([[401, 200, 200], at + 1]);
  }
  expect(await tab.evaluate("globalThis.isSamePage")).toBe(true);
  for (const each of [tab, other]) expect(await statesOf(each)).not.toContain("ended");
});

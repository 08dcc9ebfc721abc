/** The verifier of a release beside a service of this version: services that verify tokens are not upgraded with it. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { AccessTokenPolicy } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import type * as verifierModule from "../../src/verifier/index.ts";
import { startService } from "../support/service.ts";
import { admin, bearer, cookie, logIn, message, openAdmin } from "../support/sessions.ts";
import { untilTrue } from "../support/until.ts";

/** @param tree the directory of the release, with its dependencies */
export async function followWith(version: string, tree: string): Promise<void> {
  console.log(`a verifier of ${version}, a service of this version`);
  const { createVerifier } = (await import(join(tree, "src/verifier/index.ts"))) as typeof verifierModule;
  const service = await startService();
  const { publicUrl, adminUrl, adminToken } = service;
  const verifier = createVerifier({ adminUrl, adminToken, issuer: publicUrl, audience: publicUrl, policy: "refuse" });
  await verifier.ready;
  const [changed, ended] = [await logIn(service), await logIn(service)];
  const isAccepted = async (token: string) => (await verifier.verify(token)).ok;
  const update = { sessionId: changed.sid, claims: { role: "user" }, accessTokens: AccessTokenPolicy.REFRESH };
  message(await openAdmin(service).call(admin.updateSession, update, bearer(adminToken)));
  const headers = cookie(changed.refreshToken);
  const refreshed = await fetch(`${publicUrl}/v1/auth/refresh`, { method: "POST", headers });
  const { data } = (await refreshed.json()) as { data: { accessToken: string } };
  await fetch(`${publicUrl}/v1/auth/logout`, { method: "DELETE", headers: bearer(ended.accessToken) });
  await untilTrue(async () => !(await isAccepted(ended.accessToken)));
  for (const token of [changed.accessToken, data.accessToken]) assert.equal(await isAccepted(token), true);
  console.log("  it refuses what has ended, and accepts tokens from before and after a change");
  verifier.close();
  await service.stop();
}

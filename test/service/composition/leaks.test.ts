/** No credential and no internal detail of the service appears in the log or in a response. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { badRefreshTokens, forgedAccessTokens, malleated } from "../../support/bad-tokens.ts";
import { type ProtocolClient, PUBLIC_PROTOCOLS, RPC_PROTOCOLS } from "../../support/clients.ts";
import { aService, STORES } from "../../support/every-protocol.ts";
import { request } from "../../support/raw-http.ts";
import { admin, bearer, cookie, logIn, message, successor } from "../../support/sessions.ts";

const { refresh, logout, listSessions, revokeSession } = SessionService.method;
const INSIDE = /\bat .+:\d+:\d+|node_modules|\/src\/|SQLITE|ECONNREFUSED|evalsha|StoreUnavailable/i;

/** Returns every secret value of a key ring file. */
function secretsOf(ring: unknown): string[] {
  if (typeof ring !== "object" || ring === null) return [];
  return Object.entries(ring).flatMap(([name, value]) =>
    typeof value === "string" && ["d", "k", "secret", "privateKey"].includes(name) ? [value] : secretsOf(value),
  );
}

describe.each(STORES)("on the %s store, with everything logged", (store) => {
  const service = aService({ LOG_LEVEL: "trace" }, store);

  test("tokens, keys and insides stay inside", async () => {
    const secrets = new Set<string>([service.adminToken]);
    for (const secret of secretsOf(JSON.parse(readFileSync(join(service.dataDir, "keys.json"), "utf8")))) {
      secrets.add(secret);
    }
    expect(secrets.size).toBeGreaterThan(2);
    const reported: string[] = [];
    for (const [at, kind] of PUBLIC_PROTOCOLS.entries()) {
      const listener = kind.open(service.publicUrl);
      const adminListener = (RPC_PROTOCOLS[at] ?? (RPC_PROTOCOLS[0] as ProtocolClient)).open(service.adminUrl);
      const header = bearer(service.adminToken);
      const user = await logIn(service, { claims: { role: "editor" } });
      const refreshed = await listener.call(refresh, {}, cookie(user.refreshToken));
      const accessToken = message(refreshed).data?.accessToken ?? "";
      for (const token of [user.refreshToken, user.accessToken, accessToken, successor(refreshed) ?? ""]) {
        secrets.add(token);
        secrets.add(token.split(".").at(-1) ?? "");
      }
      const responses = [
        await listener.call(revokeSession, { sessionId: user.refreshToken }, bearer(accessToken)),
        await listener.call(listSessions, { pageToken: user.refreshToken }, bearer(accessToken)),
        await adminListener.call(admin.getSession, { sessionId: user.refreshToken }, header),
        await adminListener.call(admin.introspectToken, { token: user.refreshToken }, header),
        await adminListener.call(admin.introspectToken, { token: user.accessToken }, header),
        await adminListener.call(admin.getSession, { sessionId: user.sid }, bearer(user.accessToken)),
        await adminListener.call(admin.createSession, { subject: user.subject, idleTimeout: {} }, header),
        await listener.call(logout, {}, bearer(user.accessToken)),
        await listener.call(refresh, {}, cookie(user.refreshToken)),
      ];
      for (const [, text] of badRefreshTokens(user.refreshToken))
        responses.push(await listener.call(refresh, {}, cookie(text)));
      for (const [, text] of [...forgedAccessTokens(accessToken), ...malleated(accessToken)]) {
        responses.push(await listener.call(logout, {}, bearer(text)));
      }
      for (const response of responses)
        if (!response.ok) reported.push(`${response.text} ${JSON.stringify([...response.headers])}`);
      for (const wanted of [
        { method: "POST", path: `/v1/auth/refresh?refresh_token=${user.refreshToken}`, headers: cookie("x") },
        {
          method: "POST",
          path: "/v1/auth/refresh",
          headers: { ...cookie(accessToken), "content-type": "application/json" },
          body: `{"t":"${accessToken}"`,
        },
        { path: `/v1/auth/${user.refreshToken}` },
        { path: "/v1/auth/sessions?pageSize=x", headers: bearer(accessToken) },
      ]) {
        const response = await request(service.publicUrl, wanted);
        reported.push(`${response.body} ${JSON.stringify([...response.headers])}`);
      }
      listener.close();
      adminListener.close();
    }
    const { body: metrics } = await request(service.adminUrl, { path: "/metrics" });

    // A log without this refusal would be empty, and would prove nothing.
    expect(service.stderr()).toContain("authn_failed");
    expect(reported.length).toBeGreaterThan(100);
    const everything = [service.stdout(), service.stderr(), metrics, ...reported].join("\n");
    for (const secret of secrets) if (secret !== "") expect(everything).not.toContain(secret);
    for (const text of reported) expect(text).not.toMatch(INSIDE);
  });
});

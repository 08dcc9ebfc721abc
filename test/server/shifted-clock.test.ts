/** An instance whose own clock is not the store's: the tokens that the store's clock stamped are verified by that clock. */
import { describe, expect, test } from "vitest";
import { SessionService } from "../../gen/auth/v1/session_pb.ts";
import { aService } from "../support/every-protocol.ts";
import { admin, bearer, logIn, message, openAdmin, openPublic } from "../support/sessions.ts";

const { listSessions, logout } = SessionService.method;

describe.each([400_000, -400_000])("an instance whose clock is ahead of Redis's by %d ms", (ms) => {
  const shift = `const now = Date.now; Date.now = () => now() + ${ms};`;
  const service = aService({ NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(shift)}` }, "redis");

  test("takes a fresh access token at every route of its own", async () => {
    const user = await logIn(service);
    const caller = openPublic(service);
    expect(message(await caller.call(listSessions, {}, bearer(user.accessToken))).data?.sessions).toHaveLength(1);
    const introspection = await openAdmin(service).call(
      admin.introspectToken,
      { token: user.accessToken },
      bearer(service.adminToken),
    );
    expect(message(introspection).active).toBe(true);
    expect((await caller.call(logout, {}, bearer(user.accessToken))).ok).toBe(true);
  });
});

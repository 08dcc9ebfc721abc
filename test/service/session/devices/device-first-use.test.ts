/** The first use of a device key is recorded only once, even if a browser sends several refreshes in one millisecond. */
import { expect, test } from "vitest";
import type { AuditEvent } from "../../../../src/service/session/audit.ts";
import { UNKNOWN_REQUESTER } from "../../../../src/service/session/audit.ts";
import type { DeviceTools } from "../../../../src/service/session/devices/presented.ts";
import type { SessionId } from "../../../../src/service/session/model.ts";
import { refresh } from "../../../../src/service/session/rotation/refresh.ts";
import { type StoreMs, toWallClock } from "../../../../src/service/session/time.ts";
import { deviceTools } from "../../../support/device-tools.ts";
import { embeddedBackend } from "../../../support/store/backends.ts";
import { LIFE, someKey } from "../../../support/store/device.ts";
import { expectCreated, newSession, nonce, REUSE_INTERVAL } from "../../../support/store/sessions.ts";

test("of two refreshes in the same millisecond one is recorded as the first use of the key", async () => {
  const backend = await embeddedBackend();
  const store = await backend.open();
  const key = someKey();
  const childNonce = nonce();
  const { session } = expectCreated(await store.create(newSession("alice"), childNonce, { cap: 10 }));
  const { sid } = session;
  const token = { sid, generation: 1, nonce: childNonce, issuedAt: backend.now() };
  await store.registerKey(sid, token, key);
  const cookies: DeviceTools["cookies"] = {
    issue: () => "",
    read: () => ({ ok: true, sid, thumbprint: key.thumbprint, issuedAtMs: backend.now() }),
  };
  const device = deviceTools(backend.now, { cookies, lifeMs: LIFE, reuseIntervalMs: REUSE_INTERVAL });
  const proven: (boolean | undefined)[] = [];
  const events: [AuditEvent["event"], SessionId | undefined][] = [];
  const deps = {
    store,
    device,
    refreshTokens: { mint: () => "" },
    accessTokens: {
      issue(_session: unknown, now: StoreMs, isProven?: boolean) {
        proven.push(isProven);
        return { token: "", expiresAt: toWallClock(now, 0) };
      },
    },
    random: { nonce },
    refreshLimit: { take: () => undefined, giveBack() {} },
    audit: (event: AuditEvent) => void events.push([event.event, "sid" in event ? event.sid : undefined]),
  };
  for (let count = 0; count < 2; count++) {
    const refreshed = await refresh(deps, [token], UNKNOWN_REQUESTER, { cookies: ["device cookie"], skipped: [] });
    expect(refreshed).toMatchObject({ ok: true, sid });
  }
  expect(proven).toEqual([true, true]);
  expect(events.filter(([event]) => event === "device_bound")).toEqual([["device_bound", sid]]);
  await backend.stop();
});

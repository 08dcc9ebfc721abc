/** Tests that every store has to pass: a session whose refresh token may be presented in one way only. */
import { expect, test } from "vitest";
import type { Context } from "../../../support/store/context.ts";
import { LIFE, present, someKey, WITHOUT, withCookie } from "../../../support/store/device.ts";
import { REUSE_INTERVAL, subject } from "../../../support/store/sessions.ts";

const R = REUSE_INTERVAL;

export function transportsContract(context: () => Context): void {
  test.each(["cookie", "token"] as const)("for the transport %s it is refused on the other", async (transport) => {
    const { store, backend, login } = context();
    const { sid, first } = await login(subject(), { transport });
    const other = transport === "cookie" ? "token" : "cookie";
    await backend.advance(3 * R);
    expect(await present(store, sid, first, { ...WITHOUT, transport: other })).toBe("wrong_transport");
    expect(await store.find(sid)).toMatchObject({ ok: true, session: { transport }, rotation: { generation: 0 } });
    if (transport === "token") expect(await present(store, sid, first)).toBe("wrong_transport");
    expect(await present(store, sid, first, { ...WITHOUT, transport })).toBe("rotate");
    const both = await login(subject());
    expect(await present(store, both.sid, both.first, { ...WITHOUT, transport })).toBe("rotate");
  });

  test("it keeps its transport beside a device key that it must have", async () => {
    const { store, backend, login } = context();
    const key = someKey();
    const { sid, first } = await login(subject(), { transport: "cookie", deviceRequired: true });
    await store.registerKey(sid, first, key);
    const session = { transport: "cookie", deviceRequired: true, device: { key } };
    expect(await store.find(sid)).toMatchObject({ session });
    await backend.advance(LIFE + 1);
    expect(await present(store, sid, first, { ...WITHOUT, transport: "token" })).toBe("wrong_transport");
    expect(await present(store, sid, first, WITHOUT)).toBe("device_required");
    expect(await present(store, sid, first, withCookie(key, backend.now()))).toBe("rotate");
    await store.unbind(sid);
    expect(await store.find(sid)).toMatchObject({ session: { transport: "cookie", deviceRequired: true } });
  });
}

/** Tests that every store has to pass: which new sessions have a user agent that their subject had no live session with. */
import { describe, expect, test } from "vitest";
import type { NewSession, SessionId } from "../../../../src/service/session/model.ts";
import { CAP, type Context } from "../../../support/store/context.ts";
import { dueOf } from "../../../support/store/event-records.ts";
import { expectCreated, IDLE, newSession, nonce, SECOND, subject } from "../../../support/store/sessions.ts";

export function newDeviceContract(context: () => Context): void {
  describe("a new device", () => {
    const agent = (userAgent: string) => ({ client: { userAgent, ipAddress: "192.0.2.1", displayName: "laptop" } });

    /** Creates a session. @returns its id, and whether its device is new */
    async function login(user: string, userAgent: string, cap = CAP, replaces?: SessionId, more?: Partial<NewSession>) {
      const session = newSession(user, { ...agent(userAgent), ...more });
      const created = expectCreated(await context().store.create(session, nonce(), { cap, replaces }));
      return [session.sid, created.newDevice] as const;
    }
    const isNew = async (...login_: Parameters<typeof login>) => (await login(...login_))[1];

    test("is one with a user agent that no live session of the subject has", async () => {
      const [user, other] = [subject(), subject()];
      expect(await isNew(user, "Firefox/140")).toBe(true);
      expect(await isNew(user, "Firefox/140")).toBe(false);
      expect(await isNew(user, "Firefox/14")).toBe(true);
      expect(await isNew(user, "Firefox/1400", CAP, undefined, { claims: '{"of":"Firefox/1400"}' })).toBe(true);
      expect(await isNew(user, "u".repeat(300))).toBe(true);
      expect(await isNew(user, "u".repeat(300))).toBe(false);
      expect(await isNew(user, "é\u{1F600}")).toBe(true);
      expect(await isNew(user, "é\u{1F600}")).toBe(false);
      expect(await isNew(other, "Firefox/140")).toBe(true);
    });

    test("is none whose user agent is not known", async () => {
      const user = subject();
      expect(await isNew(user, "")).toBe(false);
      expect(await isNew(user, "")).toBe(false);
    });

    test("sessions that have ended or expired are not live, the one that is replaced or makes room is", async () => {
      const { backend, store } = context();
      const user = subject();
      const [first] = await login(user, "Firefox");
      await store.end(first, "logout");
      const [second, again] = await login(user, "Firefox");
      expect(again).toBe(true);
      const [, replacing] = await login(user, "Firefox", CAP, second);
      expect(replacing).toBe(false);
      expect(await isNew(user, "Firefox", 1)).toBe(false);
      await backend.advance(IDLE);
      expect(await isNew(user, "Firefox")).toBe(true);
      await store.revokeAll(undefined);
      expect(await isNew(user, "Firefox")).toBe(true);
      await store.endAll(user, "revoked_subject");
      expect(await isNew(user, "Firefox")).toBe(true);
    });

    test("is not asked of a session that continues one of another system", async () => {
      const { store } = context();
      const user = subject();
      const session = newSession(user, agent("Firefox"));
      await store.create(session, nonce(), { cap: CAP, origin: { address: "192.0.2.7" }, reservedMs: 60 * SECOND });
      expect((await dueOf(store, session.sid)).map(({ event }) => event.newDevice)).toEqual([undefined]);
      expect(await isNew(user, "Firefox")).toBe(false);
    });

    test("the newest 128 sessions of a subject that has many are looked at", async () => {
      const { backend } = context();
      const user = subject();
      await login(user, "oldest", 1_000);
      await backend.advance(SECOND);
      for (let at = 0; at < 128; at++) await login(user, "Firefox", 1_000);
      await backend.advance(SECOND);
      expect(await isNew(user, "Firefox", 1_000)).toBe(false);
      expect(await isNew(user, "oldest", 1_000)).toBe(true);
      expect(await isNew(user, "oldest", 1_000)).toBe(false);
    });

    test("what is to be recorded of the creation says so, so that it is recorded with it", async () => {
      const { store } = context();
      const user = subject();
      const [one, two] = [newSession(user, agent("Firefox")), newSession(user, agent("Firefox"))];
      for (const session of [one, two])
        await store.create(session, nonce(), { cap: CAP, origin: { address: "192.0.2.7" } });
      const newDevices = (await dueOf(store, one.sid, two.sid)).map(({ event }) => [event.sid, event.newDevice]);
      expect(new Map(newDevices as [SessionId, boolean | undefined][])).toEqual(
        new Map([
          [one.sid, true],
          [two.sid, undefined],
        ]),
      );
    });
  });
}

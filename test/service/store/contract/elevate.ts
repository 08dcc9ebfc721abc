/** Tests that every store has to pass: the authentication of a session. */
import { describe, expect, test } from "vitest";
import { firstState } from "../../../../src/service/session/rotation/rotation.ts";
import { storeMs, wallMs } from "../../../../src/service/session/time.ts";
import { CAP, type Context } from "../../../support/store/context.ts";
import { expectCreated, IDLE, newSession, nonce, SECOND, sidOf, subject } from "../../../support/store/sessions.ts";

export function elevateContract(context: () => Context): void {
  describe("elevate", () => {
    const first = { time: wallMs(1_000_000), methods: ["pwd"], contextClass: "" };
    const second = { time: wallMs(2_000_000), methods: ["pwd", "otp"], contextClass: "urn:example:gold" };

    test("what is known of an authentication comes back, from creation on, and changes nothing else", async () => {
      const { backend, store, refresh } = context();
      const user = subject();
      const plain = newSession(user, { claims: '{"role":"x"}', audience: "a".repeat(254) });
      const authenticated = newSession(user, {
        authentication: first,
        client: { ...plain.client, userAgent: "u".repeat(300) },
      });
      for (const session of [plain, authenticated]) {
        const token = { generation: 1, nonce: nonce(), issuedAt: storeMs(0) };
        const { session: created } = expectCreated(await store.create(session, token.nonce, { cap: CAP }));
        expect(created).toMatchObject(session);
        await backend.advance(SECOND);
        expect(await store.elevate(session.sid, second)).toEqual({
          ok: true,
          session: { ...created, authentication: second },
        });
        // This repeats an earlier call, as after a lost reply.
        expect(await store.elevate(session.sid, second)).toMatchObject({ ok: true });
        const found = await store.find(session.sid);
        expect(found).toMatchObject({
          session: { ...created, authentication: second },
          rotation: firstState(token.nonce),
        });
        expect((await refresh(session.sid, token)).session.authentication).toEqual(second);
      }
      const { sessions } = await store.list(user, 10, undefined);
      expect(sessions.map(({ authentication }) => authentication)).toEqual([second, second]);
    });

    test("an earlier authentication is refused, and so is one of a session that is not live", async () => {
      const { store } = context();
      const session = newSession(subject(), { authentication: second });
      await store.create(session, nonce(), { cap: CAP });
      expect(await store.elevate(session.sid, first)).toEqual({ ok: false, reason: "outdated" });
      expect(await store.find(session.sid)).toMatchObject({ session });
      await store.end(session.sid, "logout");
      expect(await store.elevate(session.sid, second)).toEqual({ ok: false, reason: "revoked" });
      expect(await store.elevate(sidOf(subject()), second)).toEqual({ ok: false, reason: "unknown" });
    });

    test("it lengthens no session's life", async () => {
      const { backend, store, login } = context();
      const { sid } = await login(subject());
      await backend.advance(IDLE - SECOND);
      await store.elevate(sid, first);
      await backend.advance(SECOND);
      expect(await store.elevate(sid, first)).toEqual({ ok: false, reason: "unknown" });
    });
  });
}

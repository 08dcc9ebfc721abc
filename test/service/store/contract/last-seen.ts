/** Tests that every store has to pass: what a session keeps of the request that last refreshed it. */
import { describe, expect, test } from "vitest";
import type { LastSeen, SessionId } from "../../../../src/service/session/model.ts";
import type { TokenFields } from "../../../../src/service/session/rotation/rotation.ts";
import { storeMs, wallMs } from "../../../../src/service/session/time.ts";
import { CAP, type Context } from "../../../support/store/context.ts";
import { someKey, someProof } from "../../../support/store/device.ts";
import {
  expectCreated,
  fullSession,
  newSession,
  nonce,
  outcomeOf,
  REUSE_INTERVAL,
  SECOND,
  subject,
} from "../../../support/store/sessions.ts";

const LAPTOP: LastSeen = { userAgent: "Firefox", ipAddress: "192.0.2.7" };
const PHONE: LastSeen = { userAgent: 'a "quoted" \\ text of some length, '.repeat(15), ipAddress: "2001:db8::1" };
const UNKNOWN: LastSeen = { userAgent: "", ipAddress: "" };

export function lastSeenContract(context: () => Context): void {
  describe("last seen", () => {
    async function seen(sid: SessionId, token: TokenFields, lastSeen: LastSeen | undefined) {
      const result = await context().store.rotate(sid, token, nonce(), undefined, lastSeen);
      if (!result.ok) throw new Error(result.reason);
      return result;
    }
    const found = async (sid: SessionId) => {
      const result = await context().store.find(sid);
      if (!result.ok) throw new Error(result.reason);
      return result.session;
    };

    test("a rotation keeps it in place of what was kept before, and lists have it", async () => {
      const { backend, store, login } = context();
      const user = subject();
      let { sid, first: token } = await login(user);
      expect(await found(sid)).not.toHaveProperty("lastSeen");
      for (const lastSeen of [LAPTOP, PHONE, UNKNOWN, LAPTOP]) {
        await backend.advance(REUSE_INTERVAL + 1);
        const result = await seen(sid, token, lastSeen);
        expect(result).toMatchObject({ outcome: "rotate", session: { lastSeen, lastRefreshedAt: backend.now() } });
        expect((await found(sid)).lastSeen).toEqual(lastSeen);
        expect((await store.list(user, 10, undefined)).sessions[0]?.lastSeen).toEqual(lastSeen);
        token = result.child;
      }
    });

    test("it changes nothing else, whatever a session has, and other steps keep it", async () => {
      const { backend, store } = context();
      const claims = '{"role":"editor"}';
      const authentication = { time: wallMs(1_700_000_000_000), methods: ["pwd"], contextClass: "gold" };
      const { deviceRequired: _, transport: _transport, actor: _actor, ...rest } = fullSession(subject());
      for (const more of [{}, { claims }, { authentication }, { persistent: false as const, claims }, rest]) {
        const session = newSession(subject(), { ...more });
        const wanted = { ...session, sid: newSession(session.subject).sid };
        const first = nonce();
        const { session: created } = expectCreated(await store.create(wanted, first, { cap: CAP }));
        const { sid } = created;
        await backend.advance(SECOND);
        const token = { generation: 1, nonce: first, issuedAt: storeMs(0) };
        const { session: after, child } = await seen(sid, token, LAPTOP);
        const { lastRefreshedAt, idleExpiresAt } = after;
        expect(after).toEqual({ ...created, lastRefreshedAt, idleExpiresAt, lastSeen: LAPTOP });
        const later = { time: wallMs(1_800_000_000_000), methods: ["otp"], contextClass: "" };
        await store.elevate(sid, later);
        expect(await store.registerKey(sid, child, someKey())).toMatchObject({ ok: true });
        expect(await store.unbind(sid)).toMatchObject({ ok: true });
        expect(await found(sid)).toEqual({ ...after, authentication: later });
      }
    });

    test("a repeat keeps what the rotation was given: it changes neither that nor the time of the refresh", async () => {
      const { backend, login } = context();
      const { sid, first } = await login(subject());
      await seen(sid, first, LAPTOP);
      const { lastRefreshedAt } = await found(sid);
      for (const lastSeen of [PHONE, undefined]) {
        await backend.advance(SECOND);
        expect(await seen(sid, first, lastSeen)).toMatchObject({ outcome: "repeat", session: { lastSeen: LAPTOP } });
        expect(await found(sid)).toMatchObject({ lastSeen: LAPTOP, lastRefreshedAt });
      }
    });

    test("a refresh whose response was lost, and one after lost writes, count", async () => {
      const { backend, login } = context();
      const { sid, first } = await login(subject());
      await seen(sid, first, LAPTOP);
      await backend.advance(REUSE_INTERVAL + 1);
      expect(await seen(sid, first, PHONE)).toMatchObject({ outcome: "recover", session: { lastSeen: PHONE } });
      const ahead = { generation: 9, nonce: nonce(), issuedAt: storeMs(backend.now()) };
      expect(await seen(sid, ahead, LAPTOP)).toMatchObject({ outcome: "heal", session: { lastSeen: LAPTOP } });
      expect((await found(sid)).lastSeen).toEqual(LAPTOP);
    });

    test("once it is not kept any more, the next rotation removes it, and nothing else", async () => {
      const { backend, store } = context();
      const user = subject();
      const first = nonce();
      const wanted = newSession(user, { claims: '{"a":1}', persistent: false });
      const { session: created } = expectCreated(await store.create(wanted, first, { cap: CAP }));
      const { child } = await seen(created.sid, { generation: 1, nonce: first, issuedAt: storeMs(0) }, LAPTOP);
      await backend.advance(REUSE_INTERVAL + 1);
      const { session } = await seen(created.sid, child, undefined);
      const { lastRefreshedAt, idleExpiresAt } = session;
      expect(session).toEqual({ ...created, lastRefreshedAt, idleExpiresAt });
      expect(await found(created.sid)).toEqual(session);
    });

    test("a refused refresh changes nothing, and keys are judged as without it", async () => {
      const { store } = context();
      const [key, other] = [someProof(7), someProof(8)];
      const first = nonce();
      const bound = newSession(subject(), { dpopJkt: key.thumbprint });
      await store.create(bound, first, { cap: CAP });
      const token = { generation: 1, nonce: first, issuedAt: storeMs(0) };
      const present = (proof: typeof key | undefined, lastSeen: LastSeen) =>
        store.rotate(bound.sid, token, nonce(), presented(proof), lastSeen);
      expect(outcomeOf(await present(undefined, PHONE))).toBe("proof_missing");
      expect(outcomeOf(await present(other, PHONE))).toBe("other_key");
      expect(await found(bound.sid)).not.toHaveProperty("lastSeen");
      expect(await present(key, LAPTOP)).toMatchObject({ outcome: "rotate", device: "proven" });
      expect(await found(bound.sid)).toMatchObject({ lastSeen: LAPTOP, device: { state: "bound" } });
    });

    test("the first proof binds a session, and both are kept in one step", async () => {
      const { login } = context();
      const proof = someProof(9);
      const { sid, first } = await login(subject(), { clientId: "cli" });
      const wrong = { ...presented(proof), transport: "token", clientId: "web" } as const;
      expect(outcomeOf(await context().store.rotate(sid, first, nonce(), wrong, LAPTOP))).toBe("wrong_client");
      const right = { ...wrong, clientId: "cli" } as const;
      const result = await context().store.rotate(sid, first, nonce(), right, LAPTOP);
      expect(result).toMatchObject({ outcome: "rotate", device: "first_use", session: { lastSeen: LAPTOP } });
      expect(await found(sid)).toMatchObject({ lastSeen: LAPTOP, device: { key: { algorithm: "DPoP" } } });
    });
  });
}

function presented(proof: ReturnType<typeof someProof> | undefined) {
  return { lifeMs: 300_000, cookie: undefined, skipped: false, ...(proof && { proof }) } as const;
}

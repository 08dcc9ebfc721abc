/** The blocks of a session's record: each is found by its first byte, whichever others there are, and unknown ones are kept. */
import { describe, expect, test } from "vitest";
import type { Authentication, SessionId } from "../../../../../src/service/session/model.ts";
import { wallMs } from "../../../../../src/service/session/time.ts";
import { encodeAuthentication, encodeFacts } from "../../../../../src/service/store/redis/encoding/blocks.ts";
import { decodeSession, encodeBody } from "../../../../../src/service/store/redis/encoding/record.ts";
import { createRedisStore } from "../../../../../src/service/store/redis/store.ts";
import { redisOptions } from "../../../../support/store/backends.ts";
import { someProof } from "../../../../support/store/device.ts";
import { newSession, nonce } from "../../../../support/store/sessions.ts";
import { ANY_TIME, encodeHead, NOW, redisOfTests, STILL, scripts } from "../../../../support/store/still-redis.ts";

const PARTITION = "{00}";

const authentication: Authentication = { time: wallMs(1_000_000), methods: ["pwd"], contextClass: "" };
const later: Authentication = { time: wallMs(2_000_000), methods: ["pwd", "otp"], contextClass: "a longer text" };

const VERSION = Buffer.from("030000000700000005", "hex");
const LAST_SEEN = Buffer.concat([Buffer.from("04000d", "hex"), Buffer.from('["curl","::"]')]);
const UNKNOWN = Buffer.concat([Buffer.from("7a0003", "hex"), Buffer.from("new")]);

/** Every combination of blocks, in ascending order, and what a session has of them. */
const COMBINATIONS = Array.from({ length: 32 }, (_, bits) => {
  const has = (bit: number) => (bits & bit) > 0;
  const blocks = [
    ...(has(1) ? [encodeAuthentication(authentication)] : []),
    ...(has(2) ? [encodeFacts({ persistent: false })] : []),
    ...(has(4) ? [VERSION] : []),
    ...(has(16) ? [LAST_SEEN] : []),
    ...(has(8) ? [UNKNOWN] : []),
  ];
  const fields = {
    ...(has(1) && { authentication }),
    ...(has(2) && { persistent: false as const }),
    ...(has(4) && { version: 7, staleBelow: 5 }),
    ...(has(16) && { lastSeen: { userAgent: "curl", ipAddress: "::" } }),
  };
  return { name: `blocks ${bits}`, blocks, fields };
});

/** Returns the record of a session with blocks between its texts and its claims. */
function recordOf(session: ReturnType<typeof newSession>, blocks: readonly Buffer[]): Buffer {
  const body = encodeBody(session);
  const claimsAt = encodeBody({ ...session, claims: "{}" }).length - (session.dpopJkt === undefined ? 0 : 47);
  return Buffer.concat([encodeHead(session, NOW), body.subarray(0, claimsAt), ...blocks, body.subarray(claimsAt)]);
}

const PLAIN = newSession("alice", {
  clientId: "c".repeat(254),
  client: { userAgent: "u".repeat(300), ipAddress: "", displayName: "" },
});
const SESSIONS = [
  { with: "claims", session: { ...PLAIN, claims: '{"role":"admin"}' } },
  { with: "no claims", session: PLAIN },
  { with: "a key and claims", session: { ...PLAIN, claims: '{"role":"admin"}', dpopJkt: someProof().thumbprint } },
  { with: "a key and no claims", session: { ...PLAIN, dpopJkt: someProof().thumbprint } },
];

describe.each(SESSIONS)("a session with $with", ({ session }) => {
  const server = redisOfTests();

  test.each(COMBINATIONS)(
    "$name are decoded, and an elevation changes the authentication and counts a version that is there",
    async (combination) => {
      const { blocks, fields } = combination;
      const sid = session.sid as SessionId;
      const { dpopJkt, ...data } = session;
      const record = recordOf(session, blocks);
      const before = decodeSession(sid, record, 0);
      expect(before).toMatchObject({ ...data, ...fields });
      const { authentication: was, ...rest } = before;
      await server().admin.set(`${PARTITION}s${sid}`, record);
      const elevate = (to: Authentication) =>
        server().admin.callBuffer(
          "EVAL",
          ...[scripts.elevate.text, 1, PARTITION, sid, to.time, encodeAuthentication(to), "", ...ANY_TIME],
        );
      const reply = (await elevate(later)) as Buffer;
      const counted = rest.version === undefined ? {} : { version: rest.version + 1 };
      expect(decodeSession(sid, reply, 7)).toEqual({ ...rest, ...counted, authentication: later });
      expect(reply.includes(UNKNOWN)).toBe(blocks.includes(UNKNOWN));
      expect(String(await elevate(authentication))).toBe("o");
      expect(((await elevate(later)) as Buffer).equals(reply)).toBe(true);
    },
  );

  test.each(COMBINATIONS)(
    "$name: a refresh replaces what was last seen, or removes it, and keeps the others",
    async (one) => {
      const store = await createRedisStore(redisOptions(server().url, { ...STILL, reuseIntervalMs: 0 }));
      const sid = session.sid as SessionId;
      const key = `{${Buffer.from(sid, "base64url").toString("hex", 0, 1)}}s${sid}`;
      const record = recordOf(session, one.blocks);
      const { lastSeen: _, ...before } = decodeSession(sid, record, 0);
      const proof = session.dpopJkt === undefined ? {} : { proof: someProof() };
      const presented = { lifeMs: 0, cookie: undefined, skipped: false, ...proof };
      const token = { generation: 1, nonce: "AAAAAAAAAAA", issuedAt: NOW };
      for (const lastSeen of [{ userAgent: "a".repeat(512), ipAddress: "2001:db8::1" }, undefined]) {
        await server().admin.set(key, record);
        const rotated = await store.rotate(sid, token, nonce(), presented, lastSeen);
        const kept = lastSeen && { lastSeen };
        const times = { lastRefreshedAt: NOW, idleExpiresAt: expect.any(Number) };
        expect(rotated).toMatchObject({ ok: true });
        expect(rotated.ok && rotated.session).toEqual({ ...before, ...times, ...kept });
        const stored = (await server().admin.getBuffer(key)) ?? Buffer.alloc(0);
        expect(decodeSession(sid, stored, 0)).toEqual({ ...before, ...times, ...kept });
        expect(stored.includes(UNKNOWN)).toBe(one.blocks.includes(UNKNOWN));
        if (lastSeen === undefined) {
          expect(stored.length).toBe(record.length - (one.blocks.includes(LAST_SEEN) ? LAST_SEEN.length : 0));
        }
      }
      await store.close();
    },
  );
});

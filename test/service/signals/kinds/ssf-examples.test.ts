/** Compares the example tokens of the specifications with tokens that this service makes from the same facts. */
import { decodeJwt, decodeProtectedHeader } from "jose";
import { expect, test } from "vitest";
import type { SessionId } from "../../../../src/service/session/model.ts";
import { wallMs } from "../../../../src/service/session/time.ts";
import { signalToken, streamEventToken } from "../../../../src/service/signals/kinds/ssf.ts";
import { someContext, someSignal } from "../world.ts";

const STREAM = { id: "f67e39a0a4d34d56b3aa1bc4cff0069f", audience: ["receiver.example.com"] };
const transmitter = {
  ...someContext().context,
  issuer: "https://transmitter.example.com",
  now: wallMs(1493856000_000),
};
const provider = {
  ...someContext().context,
  issuer: "https://idp.example.com/123456789/",
  now: wallMs(1615305159_000),
};

const claims = async (signed: string | Promise<string>) => {
  const token = await signed;
  expect(decodeProtectedHeader(token).typ).toBe("secevent+jwt");
  return decodeJwt(token);
};

test("the verification event of SSF 1.0, section 8.1.4.2", async () => {
  const event = { type: "verification", state: "VGhpcyBpcyBhbiBleGFtcGxlIHN0YXRlIHZhbHVlLgo=" } as const;
  expect(await claims(streamEventToken({ id: "123456", event }, STREAM, transmitter))).toEqual({
    jti: "123456",
    txn: "123456",
    iss: "https://transmitter.example.com",
    aud: "receiver.example.com",
    iat: 1493856000,
    sub_id: { format: "opaque", id: "f67e39a0a4d34d56b3aa1bc4cff0069f" },
    events: {
      "https://schemas.openid.net/secevent/ssf/event-type/verification": {
        state: "VGhpcyBpcyBhbiBleGFtcGxlIHN0YXRlIHZhbHVlLgo=",
      },
    },
  });
});

test("the event of an updated stream of SSF 1.0, section 8.1.5", async () => {
  const event = { type: "stream-updated", status: "paused", reason: "Internal error" } as const;
  expect(await claims(streamEventToken({ id: "123456", event }, STREAM, transmitter))).toEqual({
    jti: "123456",
    txn: "123456",
    iss: "https://transmitter.example.com",
    aud: "receiver.example.com",
    iat: 1493856000,
    sub_id: { format: "opaque", id: "f67e39a0a4d34d56b3aa1bc4cff0069f" },
    events: {
      "https://schemas.openid.net/secevent/ssf/event-type/stream-updated": {
        status: "paused",
        reason: "Internal error",
      },
    },
  });
});

const SESSION_REVOKED = "https://schemas.openid.net/secevent/caep/event-type/session-revoked";
const revoked = {
  id: "24c63fb56e5a2d77a6b512616ca9fa24",
  sessionId: "dMTlD|1600802906337.16|16008.16" as SessionId,
  reason: "session_limit",
} as const;

const common = {
  iss: "https://idp.example.com/123456789/",
  jti: "24c63fb56e5a2d77a6b512616ca9fa24",
  txn: "24c63fb56e5a2d77a6b512616ca9fa24",
  iat: 1615305159,
  aud: "https://sp.example.com/caep",
};

/**
 * The event of the specification's example, as this service writes it. It lacks `reason_user` and a tenant, which are optional. The text of
 * the reason differs from the example, and so does `txn` in the token, which is a number there.
 */
const EVENT = { event_timestamp: 1615304991, initiating_entity: "policy", reason_admin: { en: "session_limit" } };

test("the revoked session of CAEP 1.0, section 3.1: without a user", async () => {
  const { subject: _, ...signal } = { ...someSignal(), ...revoked, happenedAt: wallMs(1615304991_000) };
  expect(await claims(signalToken(signal, { audience: ["https://sp.example.com/caep"] }, provider))).toEqual({
    ...common,
    sub_id: { format: "opaque", id: "dMTlD|1600802906337.16|16008.16" },
    events: { [SESSION_REVOKED]: EVENT },
  });
});

test("the revoked session of CAEP 1.0, section 3.1: of a user", async () => {
  const subject = "99beb27c-c1c2-4955-882a-e0dc4996fcbc";
  const signal = { ...someSignal(), ...revoked, subject, happenedAt: wallMs(1615304991_000) };
  expect(await claims(signalToken(signal, { audience: ["https://sp.example.com/caep"] }, provider))).toEqual({
    ...common,
    sub_id: {
      format: "complex",
      session: { format: "opaque", id: "dMTlD|1600802906337.16|16008.16" },
      user: { format: "iss_sub", iss: "https://idp.example.com/123456789/", sub: subject },
    },
    events: { [SESSION_REVOKED]: EVENT },
  });
});

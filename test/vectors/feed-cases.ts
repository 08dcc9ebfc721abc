/** Cases about the revocation feed: the end of sessions and of all sessions before a time, revoked keys, and the age of the feed's data. */
import { CLAIMS, type FeedEvent, type Forge, NOW, NOW_MS, SID, type VectorCase } from "./format.ts";
import { MAIN, NEXT, UNPUBLISHED } from "./keys.ts";

const time = (ms: number) => new Date(ms).toISOString();
const revoked = (sessionId: string, expiresMs = NOW_MS + 900_000) => ({
  ...{ sessionId, revokeTime: time(NOW_MS - 1000), expireTime: time(expiresMs) },
  ...{ reason: "logout", revocationReason: "REVOCATION_REASON_LOGOUT" },
});
const expired = (sessionId: string) => ({
  ...revoked(sessionId),
  ...{ reason: "expired", revocationReason: "REVOCATION_REASON_EXPIRED" },
});
const CAUGHT_UP = { cursor: "1", caughtUp: true };
const OTHER_SID = "BBECAwQFBgcICQoLDA0ODxA";

/** Returns a batch that arrived `agoMs` before the verification. */
const batch = (agoMs: number, content: object): FeedEvent => ({
  atMs: NOW_MS - agoMs,
  batch: { ...CAUGHT_UP, ...content },
});

export function feedCases(forge: Forge): VectorCase[] {
  const { token } = forge;
  const good = token();
  const of = (name: string, feed: readonly FeedEvent[], verdict: VectorCase["verdict"], text = good, options = {}) => ({
    ...{ name: `the feed: ${name}`, token: text, nowMs: NOW_MS, feed, verdict },
    ...(Object.keys(options).length > 0 && { options }),
  });
  return [
    of("nothing is revoked", [batch(0, {})], "accepted"),
    of("the session has ended", [batch(0, { revocations: [revoked(SID)] })], "revoked"),
    of(
      "the session has expired: only a token that is expired as well has its sid",
      [batch(0, { revocations: [expired(SID)] })],
      "accepted",
    ),
    of(
      "the session has expired, and has ended before",
      [batch(1000, { revocations: [revoked(SID)] }), batch(0, { revocations: [expired(SID)] })],
      "revoked",
    ),
    of("another session has ended", [batch(0, { revocations: [revoked(OTHER_SID)] })], "accepted"),
    of(
      "one of many has ended",
      [batch(0, { revocations: [OTHER_SID, SID, "x"].map((sid) => revoked(sid)) })],
      "revoked",
    ),
    of("the end comes in a later batch", [batch(1000, {}), batch(0, { revocations: [revoked(SID)] })], "revoked"),
    of("the end stays known", [batch(2000, { revocations: [revoked(SID)] }), batch(1000, {}), batch(0, {})], "revoked"),
    of(
      "the end comes twice",
      [batch(1000, { revocations: [revoked(SID)] }), batch(0, { revocations: [revoked(SID, NOW_MS + 1)] })],
      "revoked",
    ),
    of("the end has no time of expiry", [batch(0, { revocations: [{ sessionId: SID }] })], "revoked"),
    of("the sid in another case", [batch(0, { revocations: [revoked(SID.toLowerCase())] })], "accepted"),
    of(
      "the end, and the token is expired",
      [batch(0, { revocations: [revoked(SID)] })],
      "expired",
      token({}, { exp: NOW - 1, iat: NOW - 2 }),
    ),
    of(
      "the end, and the token is for another service",
      [batch(0, { revocations: [revoked(SID)] })],
      "wrong_audience",
      token({}, { aud: "other" }),
    ),
    of("the end counts, however old it is", [batch(60_000, { revocations: [revoked(SID)] })], "revoked"),
    ...ageCases(of),
    ...untilCases(forge, of),
    of("the key is revoked", [batch(0, { revokedKeyIds: [MAIN.kid] })], "revoked_key"),
    of("one of several keys is revoked", [batch(0, { revokedKeyIds: ["x", MAIN.kid] })], "revoked_key"),
    of("another key is revoked", [batch(0, { revokedKeyIds: [NEXT.kid] })], "accepted"),
    of("a revoked key stays revoked", [batch(1000, { revokedKeyIds: [MAIN.kid] }), batch(0, {})], "revoked_key"),
    of(
      "a revoked key, before the batches are complete",
      [batch(0, { revokedKeyIds: [MAIN.kid], caughtUp: false })],
      "revoked_key",
    ),
    of(
      "a revoked key that is not in the key set",
      [batch(0, { revokedKeyIds: [UNPUBLISHED.kid] })],
      "revoked_key",
      token({ kid: UNPUBLISHED.kid }, {}, UNPUBLISHED),
    ),
    of(
      "a revoked key, and the signature is forged",
      [batch(0, { revokedKeyIds: [MAIN.kid] })],
      "revoked_key",
      token({}, {}, NEXT),
    ),
    of(
      "a revoked key, and the algorithm is another",
      [batch(0, { revokedKeyIds: [MAIN.kid] })],
      "wrong_algorithm",
      token({ alg: "HS256" }),
    ),
    of(
      "a revoked key, and alg EdDSA",
      [batch(0, { revokedKeyIds: [MAIN.kid] })],
      "revoked_key",
      token({ alg: "EdDSA" }),
    ),
    of(
      "a revoked key, and the type is another",
      [batch(0, { revokedKeyIds: [MAIN.kid] })],
      "wrong_type",
      token({ typ: "JWT" }),
    ),
    of(
      "a revoked key, and the claims are expired",
      [batch(0, { revokedKeyIds: [MAIN.kid] })],
      "revoked_key",
      token({}, { exp: 1 }),
    ),
    {
      ...of("a revoked key, and the key set cannot be read", [batch(0, { revokedKeyIds: [MAIN.kid] })], "revoked_key"),
      keys: null,
    },
    { ...of("the key set is not known", [batch(0, {})], "unavailable"), keys: null },
    {
      ...of(
        "the session has ended, but its key is not known",
        [batch(0, { revocations: [revoked(SID)] })],
        "unavailable",
      ),
      keys: null,
    },
  ];
}

type Of = (
  name: string,
  feed: readonly FeedEvent[],
  verdict: VectorCase["verdict"],
  text?: string,
  options?: object,
) => VectorCase;

function ageCases(of: Of): VectorCase[] {
  const incomplete = { caughtUp: false };
  const asOf = (agoMs: number) => ({ asOfTime: time(NOW_MS - agoMs) });
  return [
    of("no batch has come", [], "unavailable"),
    of("no batch was complete", [batch(0, incomplete)], "unavailable"),
    of(
      "no batch was complete, but it has the session",
      [batch(0, { ...incomplete, revocations: [revoked(SID)] })],
      "revoked",
    ),
    of("the second batch was complete", [batch(0, incomplete), batch(0, {})], "accepted"),
    of("it is 5,000 ms old", [batch(5000, {})], "accepted"),
    of("it is 5,001 ms old", [batch(5001, {})], "unavailable"),
    of("a batch that is not complete does not renew it", [batch(5001, {}), batch(0, incomplete)], "unavailable"),
    of("a complete batch renews it", [batch(9000, {}), batch(1000, {})], "accepted"),
    of("the option maxStalenessMs, just", [batch(250, {})], "accepted", undefined, { maxStalenessMs: 250 }),
    of("the option maxStalenessMs, too old", [batch(251, {})], "unavailable", undefined, { maxStalenessMs: 250 }),
    of("the option maxStalenessMs, greater", [batch(60_000, {})], "accepted", undefined, { maxStalenessMs: 60_000 }),
    of("its times are those of another clock", [batch(0, { asOfTime: "2001-09-09T01:46:40Z" })], "accepted"),
    of("its times are ahead", [batch(0, { asOfTime: "2100-01-01T00:00:00.123456789Z" })], "accepted"),
    of("a batch is late by 2,000 ms", [batch(2500, asOf(2500)), batch(0, asOf(2000))], "accepted", undefined, {
      maxStalenessMs: 2000,
    }),
    of("a batch is late by 2,001 ms", [batch(2500, asOf(2500)), batch(0, asOf(2001))], "unavailable", undefined, {
      maxStalenessMs: 2000,
    }),
    of(
      "a batch is late, the least delay counts",
      [batch(3000, asOf(3900)), batch(2000, asOf(2100)), batch(0, asOf(1100))],
      "accepted",
      undefined,
      { maxStalenessMs: 1000 },
    ),
    of(
      "a batch is late by more, the least delay counts",
      [batch(3000, asOf(3900)), batch(2000, asOf(2100)), batch(0, asOf(1101))],
      "unavailable",
      undefined,
      { maxStalenessMs: 1000 },
    ),
    of("a delay grows with time", [batch(3500, asOf(3500)), batch(1000, asOf(2000))], "unavailable", undefined, {
      maxStalenessMs: 1999,
    }),
    of(
      "a batch that is not complete tells the least delay, too",
      [batch(1000, { ...incomplete, ...asOf(1000) }), batch(0, asOf(1000))],
      "unavailable",
      undefined,
      { maxStalenessMs: 999 },
    ),
    of(
      "a batch without a time counts from its arrival",
      [batch(1000, asOf(5000)), batch(0, {})],
      "accepted",
      undefined,
      { maxStalenessMs: 0 },
    ),
  ];
}

function untilCases({ token }: Forge, of: Of): VectorCase[] {
  const until = (ms: number) => [batch(0, { revokedUntilTime: time(ms) })];
  const sct = CLAIMS.sct;
  const iatMs = CLAIMS.iat * 1000;
  return [
    of("all sessions until the creation of this one", until(sct), "revoked"),
    of("all sessions until a millisecond before", until(sct - 1), "accepted"),
    of("all sessions until later", until(sct + 3_600_000), "revoked"),
    of(
      "an older time does not undo a later one",
      [...until(sct), batch(0, { revokedUntilTime: time(sct - 60_000) })],
      "revoked",
    ),
    of(
      "it stays known when it is not sent any more",
      [batch(1000, { revokedUntilTime: time(sct) }), batch(0, {})],
      "revoked",
    ),
    of(
      "all sessions, before the batches are complete",
      [batch(0, { revokedUntilTime: time(sct), caughtUp: false })],
      "revoked",
    ),
    of("all sessions, and the token is expired", until(sct), "expired", token({}, { exp: NOW - 1, iat: NOW - 2 })),
    of("without sct, the time of issue counts", until(iatMs), "revoked", token({}, { sct: undefined })),
    of("without sct, issued a millisecond later", until(iatMs - 1), "accepted", token({}, { sct: undefined })),
    ...[null, String(sct), true, [sct]].map((value) =>
      of(`sct ${JSON.stringify(value)} is none`, until(iatMs - 1), "accepted", token({}, { sct: value })),
    ),
    of("sct with a fraction, later", until(sct), "accepted", token({}, { sct: sct + 0.5 })),
    of("sct 0", until(1), "revoked", token({}, { sct: 0 })),
    of("sct negative", until(0), "revoked", token({}, { sct: -1 })),
  ];
}

/** Cases about sessions that have changed: the feed refuses their tokens of earlier versions. */
import { CLAIMS, type FeedEvent, type Forge, NOW, NOW_MS, SID, type VectorCase } from "./format.ts";

const OTHER_SID = "BBECAwQFBgcICQoLDA0ODxA";
const MAX_VERSION = 2 ** 32 - 1;

const time = (ms: number) => new Date(ms).toISOString();
const mark = (minVersion: number, sessionId = SID, expiresMs = NOW_MS + 300_000) => ({
  ...{ sessionId, minVersion, markTime: time(NOW_MS - 1000), expireTime: time(expiresMs) },
});
const ended = { sessionId: SID, expireTime: time(NOW_MS + 300_000), reason: "logout" };
const batch = (agoMs: number, content: object): FeedEvent => ({
  atMs: NOW_MS - agoMs,
  batch: { cursor: "1", caughtUp: true, ...content },
});
const marks = (...staleTokens: readonly object[]) => [batch(0, { staleTokens })];

export function staleCases({ token, withPayload }: Forge): VectorCase[] {
  const of = (
    name: string,
    feed: readonly FeedEvent[],
    verdict: VectorCase["verdict"],
    claims: object | string = {},
  ): VectorCase => ({
    ...{ name: `the session has changed: ${name}`, nowMs: NOW_MS, feed, verdict },
    token: typeof claims === "string" ? claims : token({}, claims),
  });
  const withVersion = (number: string) => withPayload(`{"sv":${number},${JSON.stringify(CLAIMS).slice(1)}`);
  const since = (agoMs: number, expiresMs: number, asOfMs: number) => [
    batch(agoMs, { staleTokens: [mark(1, SID, expiresMs)], asOfTime: time(asOfMs - agoMs) }),
    batch(0, { asOfTime: time(asOfMs) }),
  ];
  return [
    of("a token from before the first change", marks(mark(1)), "stale"),
    of("sv 0 is the version of a token without sv", marks(mark(1)), "stale", { sv: 0 }),
    of("a token of the version before", marks(mark(2)), "stale", { sv: 1 }),
    of("a token of the version", marks(mark(2)), "accepted", { sv: 2 }),
    of("a token of a later version", marks(mark(2)), "accepted", { sv: 3 }),
    of("a version with a fraction of zero", marks(mark(2)), "accepted", withVersion("2.0")),
    of("a version with an exponent", marks(mark(11)), "stale", withVersion("1e1")),
    of("the greatest version", marks(mark(MAX_VERSION)), "accepted", { sv: MAX_VERSION }),
    of("the version before the greatest", marks(mark(MAX_VERSION)), "stale", { sv: MAX_VERSION - 1 }),
    of("another session has", marks(mark(1, OTHER_SID)), "accepted"),
    of("one of many has", marks(mark(1, OTHER_SID), mark(1), mark(7, "x")), "stale"),
    of("its sid in another case", marks(mark(1, SID.toLowerCase())), "accepted"),
    of("a mark without a version", marks({ sessionId: SID }), "accepted"),
    of("a mark without a time of expiry", marks({ sessionId: SID, minVersion: 1 }), "stale"),
    of("the next mark replaces the last", [...marks(mark(1)), ...marks(mark(2))], "stale", { sv: 1 }),
    of("an earlier mark lowers nothing", [...marks(mark(2)), ...marks(mark(1))], "stale", { sv: 1 }),
    of("two marks in one batch", marks(mark(2), mark(1)), "stale", { sv: 1 }),
    of("a mark stays known", [batch(2000, { staleTokens: [mark(1)] }), batch(1000, {}), batch(0, {})], "stale"),
    of(
      "a mark counts before the batches are complete",
      [batch(0, { staleTokens: [mark(1)], caughtUp: false })],
      "stale",
    ),
    of("a mark counts, however old it is", [batch(60_000, { staleTokens: [mark(1)] })], "stale"),
    of("a token of the version, and the feed is too old", [batch(60_000, { staleTokens: [mark(1)] })], "unavailable", {
      sv: 1,
    }),
    of("a mark is kept until its time is over by the store", since(30_000, NOW_MS - 20_000, NOW_MS - 60_000), "stale"),
    of("a mark is kept until its time is over by the local clock", since(30_000, NOW_MS + 1, NOW_MS + 60_000), "stale"),
    of(
      "a mark is kept until the later of two times",
      [...[NOW_MS + 1, NOW_MS - 20_000].map((ms) => batch(30_000, { staleTokens: [mark(1, SID, ms)] })), batch(0, {})],
      "stale",
    ),
    of("and has ended", [batch(0, { staleTokens: [mark(1)], revocations: [ended] })], "revoked"),
    of(
      "and has ended, a token of the version",
      [batch(0, { staleTokens: [mark(1)], revocations: [ended] })],
      "revoked",
      { sv: 1 },
    ),
    of("it has ended, and the mark comes later", [batch(0, { revocations: [ended] }), ...marks(mark(1))], "revoked", {
      sv: 1,
    }),
    of(
      "and all sessions have ended",
      [batch(0, { staleTokens: [mark(1)], revokedUntilTime: time(NOW_MS) })],
      "revoked",
    ),
    of("the token is expired", marks(mark(1)), "expired", { exp: NOW - 1, iat: NOW - 2 }),
    of("the token is for another service", marks(mark(1)), "wrong_audience", { aud: "other" }),
    of("the version is malformed", marks(mark(1)), "malformed", { sv: "1" }),
    of("a token of an exchange, too", marks(mark(2)), "stale", { sv: 1, act: { sub: "agent-1" } }),
    { ...of("the key set is not known", marks(mark(1)), "unavailable"), keys: null },
  ];
}

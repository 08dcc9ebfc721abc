/** What a rate limit counts an attempt under, and that an attempt to which the store did not reply does not count. */
import { expect, test } from "vitest";
import { elevate } from "../../../src/service/session/admin/admin.ts";
import { create } from "../../../src/service/session/admin/create.ts";
import { update } from "../../../src/service/session/admin/update.ts";
import { exchange } from "../../../src/service/session/exchange/exchange.ts";
import { migrate } from "../../../src/service/session/migration/migrate.ts";
import { type RateLimit, StoreUnavailable } from "../../../src/service/session/ports.ts";
import { refresh } from "../../../src/service/session/rotation/refresh.ts";
import { wallMs } from "../../../src/service/session/time.ts";
import { deviceTools } from "../../support/device-tools.ts";
import {
  accessTokens,
  limitOf,
  NOW,
  RANDOM,
  REFRESH_TOKENS,
  REQUESTER,
  SID,
  script,
  sessionOf,
  tokenOf,
} from "../../support/session/scripted.ts";

const { sid: _, createdAt, lastRefreshedAt, idleExpiresAt, absoluteExpiresAt, ...WANTED } = sessionOf();
const OUTAGE = async () => {
  throw new StoreUnavailable("away");
};
const port = script({
  rotate: OUTAGE,
  create: OUTAGE,
  update: OUTAGE,
  elevate: OUTAGE,
  find: OUTAGE,
});
const PROOF = { thumbprint: "key" };
const FRESH = { ok: true, sid: SID, thumbprint: new Uint8Array(32), issuedAtMs: NOW } as const;
const device = deviceTools(() => NOW, {
  sessionKeys: new Map([[SID, PROOF.thumbprint]]),
  cookies: { issue: () => "", read: () => FRESH },
});
const tokens = { refreshTokens: REFRESH_TOKENS, accessTokens: accessTokens(), random: RANDOM };
const refreshed =
  (...more: readonly (Parameters<typeof refresh>[3] | Parameters<typeof refresh>[4])[]) =>
  (refreshLimit: RateLimit) =>
    refresh({ ...port, ...tokens, device, refreshLimit }, [tokenOf()], REQUESTER, ...(more as []));
const creation = (createLimit: RateLimit) => ({ ...port, ...tokens, maxSessionsPerSubject: 9, createLimit });
const authentication = { time: wallMs(1), methods: [], contextClass: "" };
const SUBJECT = { sid: SID, sub: "alice", aud: ["api"], exp: 1, jti: "j", all: {} };
const POLICY = {
  clientId: "gateway",
  subjectTokenAudiences: ["api"],
  audiences: undefined,
  claims: [],
  maxLifetimeMs: undefined,
  mayAct: [],
  mayRebind: false,
};

test.each<[what: string, key: string, attempt: (limit: RateLimit) => Promise<unknown>]>([
  ["a refresh", SID, refreshed()],
  ["a refresh with a fresh device cookie", `${SID}+`, refreshed({ cookies: ["cookie"], skipped: [] })],
  [
    "a refresh with the proof of the session's key",
    `${SID}+key`,
    refreshed(undefined, { clientId: "web", proof: PROOF }),
  ],
  ["a refresh with another proof", SID, refreshed(undefined, { clientId: "web", proof: { thumbprint: "other" } })],
  ["a creation", "alice", (limit) => create(creation(limit), WANTED, REQUESTER)],
  [
    "a creation for an actor",
    "support",
    (limit) => create(creation(limit), { ...WANTED, actor: { subject: "support" } }, REQUESTER),
  ],
  [
    "a migration",
    "alice",
    (limit) =>
      migrate(
        { ...creation(limit), sessionIdOf: () => SID, reuseIntervalMs: 10 },
        { wanted: WANTED, limit: undefined, id: "old", cookieName: "c" },
        REQUESTER,
      ),
  ],
  ["an update", SID, (updateLimit) => update({ ...port, updateLimit }, SID, { outdatesTokens: false }, REQUESTER)],
  [
    "an elevation that makes tokens stale",
    SID,
    (updateLimit) => elevate({ ...port, updateLimit }, SID, authentication, true, REQUESTER),
  ],
  [
    "a token exchange",
    `gateway ${SID}`,
    (refreshLimit) =>
      exchange(
        {
          ...{ ...port, refreshLimit, audiences: new Set<string>() },
          accessTokens: { narrow: () => ({ token: "", expiresAt: wallMs(0) }) },
        },
        POLICY,
        { subject: SUBJECT, audiences: [] },
        REQUESTER,
      ),
  ],
])("%s counts as %s, unless the store does not reply", async (_what, key, attempt) => {
  const limit = limitOf();
  const taken: string[] = [];
  const take = (of: string) => {
    taken.push(of);
    return limit.take(of);
  };
  await expect(attempt({ ...limit, take })).rejects.toThrow(StoreUnavailable);
  expect([taken, limit.counted]).toEqual([[key], []]);
});

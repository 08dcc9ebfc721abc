/** WatchRevocations, through every protocol that speaks RPC. */
import type { MessageShape } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { AccessTokenPolicy, RevocationReason } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { type Caller, RPC_PROTOCOLS } from "../../support/clients.ts";
import { aService, STORES, throughEvery } from "../../support/every-protocol.ts";
import {
  admin,
  bearer,
  cookie,
  logIn,
  message,
  openAdmin,
  openPublic,
  somebody,
  successor,
} from "../../support/sessions.ts";
import { quietMs } from "../../support/slowness.ts";

/** The interval of heartbeats, in ms. */
const HEARTBEAT_INTERVAL_MS = 500;

type Batch = MessageShape<typeof admin.watchRevocations.output>;

const { refresh, logout, revokeSession, revokeOtherSessions } = SessionService.method;

describe.each(STORES)("on the %s store", (store) => {
  const service = aService({ REUSE_INTERVAL: "0", MAX_SESSIONS_PER_SUBJECT: "3" }, store);
  /** Runs `body` with a watch, and ends the watch when `body` has ended. */
  async function watching<T>(
    caller: Caller,
    cursor: string,
    body: (next: () => Promise<Batch>) => Promise<T>,
  ): Promise<T> {
    const leaving = new AbortController();
    const stream = caller.stream(admin.watchRevocations, { cursor }, bearer(service.adminToken), leaving.signal);
    const batches = stream[Symbol.asyncIterator]();
    try {
      return await body(async () => {
        const { done, value } = await batches.next();
        if (done) throw new Error("the watch ended");
        return value;
      });
    } finally {
      leaving.abort();
      await batches.next().catch(() => {});
    }
  }

  /**
   * Reads batches until all `wanted` sessions have been reported as ended and a batch says that the log has been read to its end. Returns
   * the reported sessions and the last cursor.
   */
  async function until(next: () => Promise<Batch>, ...wanted: readonly string[]) {
    const reported = new Map<string, Batch["revocations"][number]>();
    for (;;) {
      const { revocations, cursor, caughtUp } = await next();
      for (const revocation of revocations) reported.set(revocation.sessionId, revocation);
      if (caughtUp && wanted.every((sid) => reported.has(sid))) return { reported, cursor };
    }
  }

  async function end(sessionId: string): Promise<void> {
    message(await openAdmin(service).call(admin.revokeSession, { sessionId }, bearer(service.adminToken)));
  }

  throughEvery(
    RPC_PROTOCOLS,
    () => service.adminUrl,
    (caller) => {
      test("what is revoked now comes first, then caughtUp, then what is revoked later", async () => {
        const [before, after] = [await logIn(service), await logIn(service)];
        await end(before.sid);
        await watching(caller, "", async (next) => {
          const { reported } = await until(next, before.sid);
          expect(reported.has(after.sid)).toBe(false);
          await end(after.sid);
          const later = await until(next, after.sid);
          expect([...later.reported.keys()]).toEqual([after.sid]);
          expect(later.cursor).not.toBe("");
        });
      });

      test("tokens that became stale are reported to watchers, to new ones the last mark of each session", async () => {
        const user = await logIn(service);
        const update = async (role: string) => {
          const change = { sessionId: user.sid, claims: { role }, accessTokens: AccessTokenPolicy.REFRESH };
          message(await openAdmin(service).call(admin.updateSession, change, bearer(service.adminToken)));
        };
        const marksOf = async (next: () => Promise<Batch>, least: number) => {
          const versions: number[] = [];
          while (!versions.some((version) => version >= least)) {
            const own = (await next()).staleTokens.filter(({ sessionId }) => sessionId === user.sid);
            for (const { minVersion, markTime, expireTime } of own) {
              versions.push(minVersion);
              expect(expireTime && markTime && timestampMs(expireTime) - timestampMs(markTime)).toBeGreaterThan(
                300_000,
              );
            }
          }
          return versions;
        };
        await update("a");
        await watching(caller, "", async (next) => {
          expect(await marksOf(next, 1)).toEqual([1]);
          await update("b");
          expect(await marksOf(next, 2)).toEqual([2]);
        });
        await watching(caller, "", async (next) => expect(await marksOf(next, 2)).toEqual([2]));
      });

      test("a watch that is resumed from a cursor misses nothing", async () => {
        const users = [await logIn(service), await logIn(service), await logIn(service)] as const;
        const cursor = await watching(caller, "", async (next) => {
          await end(users[0].sid);
          return (await until(next, users[0].sid)).cursor;
        });
        await end(users[1].sid);
        await watching(caller, cursor, async (next) => {
          await until(next, users[1].sid);
          await end(users[2].sid);
          await until(next, users[2].sid);
        });
      });

      test("a cursor that is none is a bad request", async () => {
        const failure = await watching(caller, "nonsense", (next) => next()).catch((error: unknown) => error);
        expect(ConnectError.from(failure).code).toBe(Code.InvalidArgument);
        expect(ConnectError.from(failure).rawMessage).toMatch(/^cursor: /);
      });

      test("without an admin token nothing is reported", async () => {
        const stream = caller.stream(admin.watchRevocations, {}, bearer("x".repeat(40)));
        const failure = await stream[Symbol.asyncIterator]()
          .next()
          .then(
            () => "a batch",
            (error: unknown) => ConnectError.from(error).code,
          );
        expect(failure).toBe(Code.Unauthenticated);
      });
    },
  );

  test("heartbeats come through every protocol", async () => {
    const beats = async (kind: (typeof RPC_PROTOCOLS)[number]) => {
      const caller = kind.open(service.adminUrl);
      const batches = await watching(caller, "", async (next) => {
        await until(next);
        return [await next(), await next()];
      });
      caller.close();
      return batches.map(({ revocations }) => revocations.length);
    };
    const tookMs = await quietMs(3 * HEARTBEAT_INTERVAL_MS, async () => {
      expect(await Promise.all(RPC_PROTOCOLS.map(beats))).toEqual(RPC_PROTOCOLS.map(() => [0, 0]));
    });
    // The exact interval of heartbeats is tested with a simulated clock (feed.test.ts). This test only checks that heartbeats come although
    // nothing is revoked.
    expect(tookMs).toBeLessThan(1_000);
  });

  describe("every way in which a session ends is reported with its reason", () => {
    const open = { admin: () => openAdmin(service), public: () => openPublic(service) };
    const rows: [reason: string, end: () => Promise<string>][] = [
      [
        "logout",
        async () => {
          const user = await logIn(service);
          message(await open.public().call(logout, {}, bearer(user.accessToken)));
          return user.sid;
        },
      ],
      [
        "revoked_by_owner",
        async () => {
          const user = await logIn(service);
          const old = await logIn(service, { subject: user.subject });
          message(await open.public().call(revokeSession, { sessionId: old.sid }, bearer(user.accessToken)));
          return old.sid;
        },
      ],
      [
        "revoked_others",
        async () => {
          const user = await logIn(service);
          const old = await logIn(service, { subject: user.subject });
          message(await open.public().call(revokeOtherSessions, {}, bearer(user.accessToken)));
          return old.sid;
        },
      ],
      [
        "revoked_by_admin",
        async () => {
          const { sid } = await logIn(service);
          await end(sid);
          return sid;
        },
      ],
      [
        "revoked_subject",
        async () => {
          const { subject, sid } = await logIn(service);
          message(await open.admin().call(admin.revokeSubjectSessions, { subject }, bearer(service.adminToken)));
          return sid;
        },
      ],
      [
        "session_limit",
        async () => {
          const subject = somebody();
          const oldest = await logIn(service, { subject });
          // When a user exceeds the limit on sessions, the oldest session is ended. Times of creation have a precision of 1 ms, so the test
          // waits until the sessions after the first one get a later time.
          for (const start = Date.now(); Date.now() <= start + 1; );
          for (let i = 0; i < 3; i++) await logIn(service, { subject });
          return oldest.sid;
        },
      ],
      [
        "reuse",
        async () => {
          const user = await logIn(service);
          let token = user.refreshToken;
          for (let generation = 0; generation < 3; ) {
            const response = await open.public().call(refresh, {}, cookie(token));
            message(response);
            const next = successor(response) ?? "";
            if (next !== token) generation++;
            token = next;
          }
          const response = await open.public().call(refresh, {}, cookie(user.refreshToken));
          expect(response.ok).toBe(false);
          return user.sid;
        },
      ],
    ];

    test.each(rows)("%s", async (reason, ends) => {
      const caller = open.admin();
      await watching(caller, "", async (next) => {
        const start = Date.now();
        const sid = await ends();
        const { reported } = await until(next, sid);
        const revocation = reported.get(sid);
        expect(revocation?.reason).toBe(reason);
        const name = reason.toUpperCase() as keyof typeof RevocationReason;
        expect(revocation?.revocationReason).toBe(RevocationReason[name]);
        const { revokeTime, expireTime } = revocation ?? {};
        const revokedAt = Number(revokeTime && timestampMs(revokeTime));
        expect(revokedAt).toBeGreaterThanOrEqual(start);
        expect(revokedAt).toBeLessThanOrEqual(Date.now());
        // The revocation is kept until every access token of the session has expired.
        expect(Number(expireTime && timestampMs(expireTime)) - revokedAt).toBeGreaterThanOrEqual(300_000);
      });
    });
  });
});

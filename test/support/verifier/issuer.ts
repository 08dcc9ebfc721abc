import { once } from "node:events";
import { createServer as createHttp1 } from "node:http";
import { createServer as createHttp2 } from "node:http2";
import type { AddressInfo, Server as NetServer, Socket } from "node:net";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { onTestFinished } from "vitest";
import { SessionAdminService } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import type { Session, SessionId } from "../../../src/service/session/model.ts";
import { storeMs } from "../../../src/service/session/time.ts";
import { createAccessTokens } from "../../../src/service/tokens/access-token.ts";
import { generateRing } from "../../../src/service/tokens/generate-key.ts";
import { readyKeys } from "../../../src/service/tokens/keys.ts";
import { createRandom, systemEntropy } from "../../../src/service/tokens/random.ts";
import type { Ring } from "../../../src/service/tokens/ring.ts";

export const ISSUER = "https://auth.example";
export const AUDIENCE = "https://api.example";
export const ADMIN_TOKEN = "an-admin-token-of-32-characters-or-more";
const DAY_MS = 86_400_000;

/** The end of a session, or with `minVersion` a change of it. */
type Entry = { sid: string; expiresAt: number; minVersion?: number };

/** Starts an issuer over real sockets (JWKS, revocation feed, introspection). Each of its possible failures can be switched on. */
export async function startIssuer() {
  const entropy = systemEntropy();
  const random = createRandom(entropy);
  const log: Entry[] = [];
  const state = {
    ring: generateRing("ES256", Date.now()),
    revokedKids: [] as string[],
    /** Sessions that were created at or before this time have ended, in ms. */
    revokedUntil: undefined as number | undefined,
    /** If `false`, there are no heartbeats, as when the store is down. */
    sendsHeartbeats: true,
    /** After this many batches, a stream holds back the later ones. */
    maxBatches: Number.POSITIVE_INFINITY,
    /** If `false`, the admin API fails every call with `unavailable`. */
    isUp: true,
    jwksStatus: 200,
    jwksBody: undefined as string | undefined,
    jwksHeaders: { "cache-control": "max-age=300" } as Record<string, string>,
    acceptsCursors: true,
  };
  const seen = {
    jwks: 0,
    /**
     * Counts how often a stream began to wait, because heartbeats are off or `maxBatches` is reached. It has then sent every batch that it
     * may send.
     */
    pauses: 0,
    introspections: [] as string[],
    cursors: [] as string[],
    authorizations: new Set<string | null>(),
  };
  const keys = { current: readyKeys(state.ring) };
  const waiting: (() => void)[] = [];
  const wake = () => {
    for (const resume of waiting.splice(0)) resume();
  };
  const heartbeats = setInterval(wake, 20).unref();

  const admin = createHttp2(
    connectNodeAdapter({
      routes: ({ service }) =>
        service(SessionAdminService, {
          async *watchRevocations({ cursor }, { signal, requestHeader }) {
            seen.cursors.push(cursor);
            seen.authorizations.add(requestHeader.get("authorization"));
            if (!state.isUp) throw new ConnectError("down", Code.Unavailable);
            if (requestHeader.get("authorization") === "Bearer wrong")
              throw new ConnectError("no", Code.Unauthenticated);
            if (requestHeader.get("authorization") === "Bearer without-watch")
              throw new ConnectError("not allowed", Code.PermissionDenied);
            if (cursor !== "" && !state.acceptsCursors) throw new ConnectError("cursor", Code.InvalidArgument);
            const nextHeartbeat = () =>
              new Promise<void>((resolve) => {
                waiting.push(resolve);
                signal.addEventListener("abort", () => resolve());
              });
            for (let position = Number(cursor), sent = 0; !signal.aborted; sent += 1) {
              while ((!state.sendsHeartbeats || sent >= state.maxBatches) && !signal.aborted) {
                seen.pauses++;
                await nextHeartbeat();
              }
              // Each batch of the feed has at most two entries, so that several batches are needed to catch up.
              const next = log.slice(position, position + 2);
              position += next.length;
              const entries = next.map(({ sid, expiresAt, minVersion }) => ({
                sessionId: sid,
                expireTime: timestampFromMs(expiresAt),
                ...(minVersion === undefined ? { reason: "logout" } : { minVersion }),
              }));
              const caughtUp = position === log.length;
              yield {
                revocations: entries.filter((entry) => "reason" in entry),
                staleTokens: entries.filter((entry) => "minVersion" in entry),
                cursor: String(position),
                caughtUp,
                revokedKeyIds: state.revokedKids,
                ...(state.revokedUntil !== undefined && { revokedUntilTime: timestampFromMs(state.revokedUntil) }),
              };
              if (caughtUp) await nextHeartbeat();
            }
          },
          introspectToken({ token }) {
            seen.introspections.push(token);
            if (!state.isUp) throw new ConnectError("down", Code.Unavailable);
            const sid: unknown = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()).sid;
            return { active: !log.some((entry) => entry.sid === sid && entry.minVersion === undefined) };
          },
        }),
    }),
  );
  const jwks = createHttp1((_, response) => {
    seen.jwks += 1;
    response.writeHead(state.jwksStatus, state.jwksHeaders);
    response.end(state.jwksBody ?? JSON.stringify(keys.current.jwks));
  });
  const sockets = new Set<Socket>();
  for (const server of [admin, jwks]) {
    server.on("connection", (socket: Socket) => {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
    });
  }
  const listen = async (server: NetServer, port = 0) => {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    return (server.address() as AddressInfo).port;
  };
  const adminPort = await listen(admin);
  const adminUrl = `http://127.0.0.1:${adminPort}`;
  const jwksUrl = `http://127.0.0.1:${await listen(jwks)}/jwks`;
  const closeConnections = () => {
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(() => {
    clearInterval(heartbeats);
    wake();
    closeConnections();
    admin.close();
    jwks.close();
  });

  return {
    adminUrl,
    jwksUrl,
    state,
    seen,
    /** Returns the published key set. */
    jwks: () => keys.current.jwks,
    /** Replaces the key ring. */
    setRing(ring: Ring) {
      state.ring = ring;
      keys.current = readyKeys(ring);
      state.revokedKids = [...keys.current.revokedKids];
      wake();
    },
    /** Signs an access token for a new session, or for a given one. */
    issue(changes: Partial<Session> = {}, ttlMs = 300_000) {
      const now = Date.now();
      const session: Session = {
        sid: random.sessionId("user-1"),
        subject: "user-1",
        clientId: "app",
        audience: AUDIENCE,
        claims: "{}",
        client: { userAgent: "", ipAddress: "", displayName: "" },
        idleTimeoutMs: DAY_MS,
        absoluteLifetimeMs: DAY_MS,
        createdAt: storeMs(now),
        lastRefreshedAt: storeMs(now),
        idleExpiresAt: storeMs(now + DAY_MS),
        absoluteExpiresAt: storeMs(now + DAY_MS),
        ...changes,
      };
      const time = { now: () => storeMs(Date.now()), shiftMs: () => 0 };
      const tokens = createAccessTokens({ keys, issuer: ISSUER, ttlMs, entropy, time });
      return { sid: session.sid, token: tokens.issue(session, storeMs(now)).token };
    },
    /** Changes claims of a token and signs it again; `undefined` removes one. */
    changeClaims(changes: object, token: string) {
      const [header = "", payload = ""] = token.split(".");
      const claims = { ...JSON.parse(Buffer.from(payload, "base64url").toString()), ...changes };
      const input = `${header}.${Buffer.from(JSON.stringify(claims)).toString("base64url")}`;
      return `${input}.${keys.current.signing.sign(input)}`;
    },
    revokeAll(createdUntil: number) {
      state.revokedUntil = createdUntil;
      wake();
    },
    revoke(sid: SessionId, expiresAt = Date.now() + DAY_MS) {
      log.push({ sid, expiresAt });
      wake();
    },
    /** Makes the tokens of a session below a version stale. */
    change(sid: SessionId, minVersion: number, expiresAt = Date.now() + DAY_MS) {
      log.push({ sid, expiresAt, minVersion });
      wake();
    },
    /** Closes every connection. */
    closeConnections,
  };
}

export type Issuer = Awaited<ReturnType<typeof startIssuer>>;

import { once } from "node:events";
import { createServer as createHttp1 } from "node:http";
import { createServer as createHttp2 } from "node:http2";
import type { AddressInfo, Server as NetServer, Socket } from "node:net";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { onTestFinished } from "vitest";
import { SessionAdminService } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import type { Session, SessionId } from "../../src/session/model.ts";
import { createAccessTokens } from "../../src/tokens/access-token.ts";
import { generateRing } from "../../src/tokens/generate-key.ts";
import { readyKeys } from "../../src/tokens/keys.ts";
import { createRandom, systemEntropy } from "../../src/tokens/random.ts";
import type { Ring } from "../../src/tokens/ring.ts";
import { createVerifier, type VerifierEvent, type VerifierOptions } from "../../src/verifier/index.ts";

export const ISSUER = "https://auth.example";
export const AUDIENCE = "https://api.example";
export const ADMIN_TOKEN = "an-admin-token-of-32-characters-or-more";
const DAY = 86_400_000;

type Told = { sid: string; expiresAt: number };

/**
 * An issuer over real sockets: JWKS, revocation feed and introspection, and a hand on everything that can
 * go wrong with them.
 */
export async function startIssuer() {
  const entropy = systemEntropy();
  const random = createRandom(entropy);
  const log: Told[] = [];
  const state = {
    ring: generateRing("ES256", Date.now()),
    revokedKids: [] as string[],
    /** Sessions that were created at this time or before have ended, ms. */
    revokedUntil: undefined as number | undefined,
    /** `false`: no heartbeat, as when the store is out. */
    beating: true,
    /** How many batches a watch is told before the rest is held back. */
    batches: Number.POSITIVE_INFINITY,
    /** `false`: the admin API refuses every call. */
    answering: true,
    jwksStatus: 200,
    jwksBody: undefined as string | undefined,
    jwksHeaders: { "cache-control": "max-age=300" } as Record<string, string>,
    cursorsAreUnderstood: true,
  };
  const seen = {
    jwks: 0,
    introspections: [] as string[],
    cursors: [] as string[],
    authorizations: new Set<string | null>(),
  };
  const keys = { current: readyKeys(state.ring) };
  const wakes: (() => void)[] = [];
  const wake = () => {
    for (const each of wakes.splice(0)) each();
  };
  const beat = setInterval(wake, 20).unref();

  const admin = createHttp2(
    connectNodeAdapter({
      routes: ({ service }) =>
        service(SessionAdminService, {
          async *watchRevocations({ cursor }, { signal, requestHeader }) {
            seen.cursors.push(cursor);
            seen.authorizations.add(requestHeader.get("authorization"));
            if (!state.answering) throw new ConnectError("out", Code.Unavailable);
            if (requestHeader.get("authorization") === "Bearer wrong")
              throw new ConnectError("no", Code.Unauthenticated);
            if (cursor !== "" && !state.cursorsAreUnderstood) throw new ConnectError("cursor", Code.InvalidArgument);
            const beat = () =>
              new Promise<void>((resolve) => {
                wakes.push(resolve);
                signal.addEventListener("abort", () => resolve());
              });
            for (let position = Number(cursor), told = 0; !signal.aborted; told += 1) {
              while ((!state.beating || told >= state.batches) && !signal.aborted) await beat();
              // Two at a time, so that catching up takes several batches.
              const next = log.slice(position, position + 2);
              position += next.length;
              const revocations = next.map(({ sid, expiresAt }) => ({
                sessionId: sid,
                expireTime: timestampFromMs(expiresAt),
                reason: "logout",
              }));
              const caughtUp = position === log.length;
              yield {
                revocations,
                cursor: String(position),
                caughtUp,
                revokedKeyIds: state.revokedKids,
                ...(state.revokedUntil !== undefined && { revokedUntilTime: timestampFromMs(state.revokedUntil) }),
              };
              if (caughtUp) await beat();
            }
          },
          introspectToken({ token }) {
            seen.introspections.push(token);
            if (!state.answering) throw new ConnectError("out", Code.Unavailable);
            const sid: unknown = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()).sid;
            return { active: !log.some((told) => told.sid === sid) };
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
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(() => {
    clearInterval(beat);
    wake();
    cut();
    admin.close();
    jwks.close();
  });

  return {
    adminUrl,
    jwksUrl,
    state,
    seen,
    /** The public keys in force. */
    jwks: () => keys.current.jwks,
    /** Puts another ring in force. */
    turn(ring: Ring) {
      state.ring = ring;
      keys.current = readyKeys(ring);
      state.revokedKids = [...keys.current.revokedKids];
      wake();
    },
    /** Signs an access token of a new session, or of the given one. */
    token(changes: Partial<Session> = {}, ttl = 300_000) {
      const now = Date.now();
      const session: Session = {
        sid: random.sessionId("user-1"),
        subject: "user-1",
        clientId: "app",
        audience: AUDIENCE,
        claims: "{}",
        client: { userAgent: "", ipAddress: "", displayName: "" },
        idleTimeout: DAY,
        absoluteLifetime: DAY,
        createdAt: now,
        lastRefreshedAt: now,
        idleExpiresAt: now + DAY,
        absoluteExpiresAt: now + DAY,
        ...changes,
      };
      const tokens = createAccessTokens({ keys, issuer: ISSUER, ttl, entropy, clock: Date.now });
      return { sid: session.sid, token: tokens.issue(session, now).token };
    },
    /** The token without one of its claims, signed again. */
    without(claim: string, token: string) {
      const [header = "", payload = ""] = token.split(".");
      const { [claim]: _, ...claims } = JSON.parse(Buffer.from(payload, "base64url").toString());
      const input = `${header}.${Buffer.from(JSON.stringify(claims)).toString("base64url")}`;
      return `${input}.${keys.current.signing.sign(input)}`;
    },
    revokeAll(createdUntil: number) {
      state.revokedUntil = createdUntil;
      wake();
    },
    revoke(sid: SessionId, expiresAt = Date.now() + DAY) {
      log.push({ sid, expiresAt });
      wake();
    },
    wake,
    /** Ends every connection at once. */
    cut,
  };
}

export type Issuer = Awaited<ReturnType<typeof startIssuer>>;

/** A verifier of that issuer, with its report at hand and clocks that tests can move. */
export function follow(issuer: Issuer, options: Partial<VerifierOptions> = {}) {
  const events: VerifierEvent[] = [];
  let wake = () => {};
  const moved = { wall: 0, monotonic: 0 };
  const verifier = createVerifier({
    adminUrl: issuer.adminUrl,
    adminToken: ADMIN_TOKEN,
    jwksUrl: issuer.jwksUrl,
    issuer: ISSUER,
    audience: AUDIENCE,
    clock: () => Date.now() + moved.wall,
    monotonic: () => performance.now() + moved.monotonic,
    report(event) {
      events.push(event);
      wake();
    },
    ...options,
  });
  onTestFinished(() => verifier.close());
  return {
    verifier,
    events,
    moved,
    /** Resolves at the next event of that name. */
    async next(name: VerifierEvent["event"]) {
      for (let from = events.length; ; from = events.length) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        const found = events.slice(from).find(({ event }) => event === name);
        if (found !== undefined) return found;
      }
    },
    /** What `verify` says, in a word. */
    async says(token: string) {
      const verdict = await verifier.verify(token);
      return verdict.ok ? "ok" : verdict.reason;
    },
  };
}

/** Asks again until it is so. A test that waits for ever fails by its time limit. */
export async function eventually(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise(setImmediate);
}

/** What a contender is, and what its clients need. */
import { setTimeout as sleep } from "node:timers/promises";
import { createRemoteJWKSet, decodeJwt, jwtVerify } from "jose";
import { startRedis } from "../../../support/redis.ts";

/** What a user holds. */
export type Held = {
  /** What the client presents at the next refresh. */
  readonly kept: string;
  /** What services are given with each request; empty before the first refresh. */
  readonly access: string;
};

/** What a refresh comes to. `refused` says that the user is signed out, and anything else that is no success is `unavailable`. */
export type Outcome = Held & { readonly result: "served" | "refused" | "unavailable" };

/** Returns whether a service accepts a request. */
export type Accepts = (access: string) => Promise<boolean>;

/** A store that is a server of its own. */
export type Store = {
  readonly pids: () => Promise<readonly number[]>;
  readonly pause: () => void;
  readonly resume: () => void;
  /** Ends it in an orderly way. `start` starts it again, with what it has stored. */
  readonly shutDown: () => Promise<void>;
  readonly start: () => Promise<void>;
  /** Ends it, and removes what it has stored. */
  readonly stop: () => Promise<void>;
};

export type Running = {
  readonly pid: number;
  /** The store, unless it is a file of the server. */
  readonly store: Store | undefined;
  /** Signs a user in. */
  readonly logIn: () => Promise<Held>;
  /** Refreshes once. */
  readonly refresh: (held: Held) => Promise<Outcome>;
  readonly logOut: (held: Held) => Promise<void>;
  /** How services check a request. */
  readonly checkedBy: string;
  readonly startServices: (
    count: number,
  ) => Promise<{ readonly services: readonly Accepts[]; readonly stop: () => void }>;
  /** How long services accept what they were given, if nothing says otherwise, in s. */
  readonly lifeSeconds: (access: string) => number;
  readonly stop: () => Promise<void>;
};

export type Contender = { readonly name: string; readonly start: () => Promise<Running> };

export type Reply = { readonly status: number; readonly headers: Headers; readonly text: string };

/** After how many ms a client gives a refresh up. This service's kit waits as long. */
const PATIENCE_MS = 15_000;

export const json = { "content-type": "application/json" };

/** Sends a request. If it has no signal, it is sent once more after a failure: a server may just be closing the connection. */
export async function send(url: string, init: RequestInit = {}): Promise<Reply> {
  const attempt = () => fetch(url, { redirect: "manual", ...init });
  const response = await (init.signal ? attempt() : attempt().catch(attempt));
  return { status: response.status, headers: response.headers, text: await response.text() };
}

export const post = (url: string, form: Readonly<Record<string, string>>, init: RequestInit = {}) =>
  send(url, { ...init, method: "POST", body: new URLSearchParams(form) });

/** Sends a request that has to succeed. */
export async function succeed(url: string, init: RequestInit = {}): Promise<Reply> {
  const reply = await send(url, init);
  if (reply.status >= 400) throw new Error(`${url}: ${reply.status} ${reply.text}`);
  return reply;
}

/**
 * Sends a refresh. `read` returns what the user holds after a success, and nothing if the response says that the user is signed out.
 * 400 and 401 say so too, whatever their error.
 */
export async function sendRefresh(
  held: Held,
  request: (init: RequestInit) => Promise<Reply>,
  read: (reply: Reply) => Held | undefined,
): Promise<Outcome> {
  const reply = await request({ signal: AbortSignal.timeout(PATIENCE_MS) }).catch(() => undefined);
  if (reply === undefined || reply.status >= 500) return { ...held, result: "unavailable" };
  if (reply.status > 401) throw new Error(`${reply.status} ${reply.text}`);
  const next = reply.status < 400 ? read(reply) : undefined;
  if (next !== undefined) return { ...next, result: "served" };
  return { ...held, kept: withCookies(held.kept, reply.headers), result: "refused" };
}

/** Adds the cookies of a response to those of a browser, as `name=value; …`. What has no cookies stays as it is. */
export function withCookies(kept: string, headers: Headers): string {
  const lines = headers.getSetCookie();
  if (lines.length === 0) return kept;
  const jar = new Map(kept.split("; ").map((pair): [string, string] => [pair.split("=", 1)[0] ?? "", pair]));
  jar.delete("");
  for (const line of lines) {
    const [pair = ""] = line.split(";", 1);
    const name = pair.split("=", 1)[0] ?? "";
    if (/max-age=0\b|1970/i.test(line)) jar.delete(name);
    else jar.set(name, pair);
  }
  return [...jar.values()].join("; ");
}

export async function redisWithFile(): Promise<Store & { readonly url: string }> {
  const redis = await startRedis("--appendonly", "yes");
  return {
    url: redis.url,
    pids: async () => [Number(/process_id:(\d+)/.exec(await redis.admin.info("server"))?.[1])],
    pause: () => redis.pause(),
    resume: () => redis.resume(),
    shutDown: () => redis.kill("SIGTERM"),
    start: () => redis.start(),
    stop: () => redis.stop(),
  };
}

/** Services that all ask the server in the same way at each request. */
export const asking = (accepts: Accepts) => async (count: number) => ({
  services: Array.from({ length: count }, () => accepts),
  stop: () => {},
});

/** Services that introspect a token at each request (RFC 7662). */
export const introspecting = (url: string, credential: Readonly<Record<string, string>>) =>
  asking(async (token) => {
    const { status, text } = await post(url, { ...credential, token });
    if (status !== 200) throw new Error(`${url}: ${status} ${text}`);
    return JSON.parse(text).active === true;
  });

/** Services that check the signature and the expiry of a JWT, and ask nobody. */
export function offline(jwksUrl: string): Running["startServices"] {
  const keys = createRemoteJWKSet(new URL(jwksUrl));
  return asking(async (access) =>
    jwtVerify(access, keys).then(
      () => true,
      () => false,
    ),
  );
}

export function lifeOfJwt(access: string): number {
  const { exp = Number.NaN, iat = Number.NaN } = decodeJwt(access);
  return exp - iat;
}

/** Repeats what an overloaded machine refuses. @throws the last error */
export async function repeat<T>(act: () => Promise<T>, attempts = 40): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (attempts === 1) throw error;
    await sleep(250);
    return repeat(act, attempts - 1);
  }
}

/** Refreshes, and repeats that while the server is unavailable, as clients do, since it is no logout. */
export const refresh = (running: Running, held: Held): Promise<Outcome> =>
  repeat(async () => {
    const outcome = await running.refresh(held);
    if (outcome.result === "unavailable") throw new Error("a refresh found no server");
    return outcome;
  });

/** Refreshes as an honest user. @throws Error if that is refused */
export async function served(running: Running, held: Held): Promise<Held> {
  const outcome = await refresh(running, held);
  if (outcome.result !== "served") throw new Error("a refresh of an honest user was refused");
  return outcome;
}

/** Signs a user in, and refreshes once. On a busy machine the response to that may be late, and it is done again. */
export const logIn = (running: Running) => repeat(async () => served(running, await running.logIn()));

/** Returns what comes of each, one after the other. */
export async function inTurns<T, R>(all: readonly T[], act: (each: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (const each of all) results.push(await act(each));
  return results;
}

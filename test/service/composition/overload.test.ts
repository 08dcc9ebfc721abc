/** Overload of the real service: a stalled Redis, and an event loop that is kept busy (docs/reference/limits.md). */
import { Agent, request } from "node:http";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { type ProtocolClient, PUBLIC_PROTOCOLS } from "../../support/clients.ts";
import { aService } from "../../support/every-protocol.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { type Service, startService, waitFor, withKeys } from "../../support/service.ts";
import { admin, bearer, cookie, type LoggedIn, logIn, message, openAdmin, openPublic } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

const { refresh, logout } = SessionService.method;
const overHttp2 = PUBLIC_PROTOCOLS.find(({ name }) => name === "gRPC by connect-node") as ProtocolClient;

type Reply = { readonly status: number; readonly retryAfter: string | undefined };

/** Sends a refresh over JSON. Settles when the whole response has arrived. */
function send(service: Service, token: string, agent: Agent): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      `${service.publicUrl}/v1/auth/refresh`,
      { method: "POST", agent, headers: { cookie: `refresh_token=${token}` } },
      (incoming) => {
        incoming.resume();
        incoming.once("end", () =>
          resolve({ status: incoming.statusCode ?? 0, retryAfter: incoming.headers["retry-after"] }),
        );
      },
    );
    outgoing.once("error", reject).end();
  });
}

const metrics = async (service: Service) => await (await fetch(`${service.adminUrl}/metrics`)).text();
const refused = (text: string, cause: string) =>
  Number(new RegExp(`^session_overload_refused_total\\{cause="${cause}"\\} (\\d+)$`, "m").exec(text)?.[1]);

describe("while Redis is stalled", () => {
  const MAX_WAITING = 40;
  const REQUESTS = 300;
  let redis: RedisServer;
  let service: Service;
  let user: LoggedIn;

  beforeAll(async () => {
    redis = await startRedis();
    service = await startService({
      DATA_DIR: withKeys(),
      REDIS_URL: redis.url,
      ADMIN_TOKENS: "a".repeat(40),
      OVERLOAD_MAX_WAITING: String(MAX_WAITING),
      RATE_LIMIT_REFRESH: "off",
      // The timeout is longer than the pause of Redis in these tests, even on a busy machine.
      REDIS_COMMAND_TIMEOUT: "10s",
    });
    user = await logIn(service);
  });
  afterAll(async () => {
    redis.resume();
    await service.stop();
    await redis.stop();
  });

  test("all but a bounded number get 503 at once, the rest is served, and so is everything when Redis is back", async () => {
    const agent = new Agent({ keepAlive: true });
    redis.pause();
    const accepted: Promise<Reply>[] = [];
    let early = 0;
    const all = Array.from({ length: REQUESTS }, () => {
      const reply = send(service, user.refreshToken, agent);
      accepted.push(reply);
      return reply.then((given) => {
        early++;
        return given;
      });
    });
    // Redis is paused, so no refresh can be served. The responses that have arrived by now are refusals that needed no command to Redis.
    await until(async () => {
      if (early < REQUESTS - MAX_WAITING) throw new Error("not yet");
    });
    expect(early).toBe(REQUESTS - MAX_WAITING);

    // Health checks, metrics and the admin listener still work. A logout is not refused but waits.
    expect((await fetch(`${service.publicUrl}/healthz`)).status).toBe(200);
    const text = await metrics(service);
    expect(refused(text, "store")).toBe(REQUESTS - MAX_WAITING);
    expect(text).toContain(`\nsession_store_commands_waiting ${MAX_WAITING}\n`);
    const loggedOut = openPublic(service).call(logout, {}, bearer(user.accessToken));
    await until(async () => {
      if (!(await metrics(service)).includes(`session_store_commands_waiting ${MAX_WAITING + 1}\n`)) throw new Error();
    });

    redis.resume();
    const replies = await Promise.all(all);
    message(await loggedOut);
    const statuses = replies.map(({ status }) => status);
    // The refreshes whose commands were waiting when the logout was sent are served, because Redis executes their commands first.
    expect(statuses.filter((status) => status === 200)).toHaveLength(MAX_WAITING);
    expect(statuses.filter((status) => status === 503)).toHaveLength(REQUESTS - MAX_WAITING);
    expect(new Set(replies.filter(({ status }) => status === 503).map(({ retryAfter }) => retryAfter))).toEqual(
      new Set(["1"]),
    );
    const next = await logIn(service);
    expect((await send(service, next.refreshToken, agent)).status).toBe(200);
    agent.destroy();
    const line = await waitFor(service, () =>
      service
        .stderr()
        .split("\n")
        .find((one) => one.includes('"overloaded"')),
    );
    expect(JSON.parse(line)).toMatchObject({ event: "overloaded", cause: "store", level: "warn" });
  });

  test.each(PUBLIC_PROTOCOLS)("$name: the refusal is the error of the table, and changes nothing", async (kind) => {
    const next = await logIn(service);
    const agent = new Agent({ keepAlive: true });
    redis.pause();
    const filling = Array.from({ length: MAX_WAITING }, () => send(service, next.refreshToken, agent));
    await until(async () => {
      if (!(await metrics(service)).includes(`session_store_commands_waiting ${MAX_WAITING}\n`)) throw new Error();
    });
    const caller = kind.open(service.publicUrl);
    const response = await caller.call(refresh, {}, cookie(next.refreshToken));
    expect(response).toMatchObject({ ok: false, code: "E503_UNAVAILABLE" });
    expect(response.headers.get("retry-after")).toBe("1");
    expect(response.headers.getSetCookie()).toEqual([]);
    const created = await openAdmin(service).call(admin.createSession, { subject: "x" }, bearer(service.adminToken));
    expect(created).toMatchObject({ ok: false, code: "E503_UNAVAILABLE" });
    redis.resume();
    await Promise.all(filling);
    message(await caller.call(refresh, {}, cookie(next.refreshToken)));
    caller.close();
    agent.destroy();
  });
});

describe("while the event loop is kept busy", () => {
  const service = aService({ OVERLOAD_MAX_LOOP_DELAY: "1ms", RATE_LIMIT_REFRESH: "off" });

  test("most ordinary calls get 503, some are served, every ending and update is, and service recovers by itself", async () => {
    // With so low a limit, a busy machine alone makes the service refuse calls.
    const user = await until(() => logIn(service));
    const others = await Promise.all(Array.from({ length: 20 }, () => until(() => logIn(service))));
    // The clients connect before the flood, and keep their connections, as HTTP/2 does. libuv accepts one connection in each turn of the
    // event loop, so one that is made during the flood may wait so long that its first request counts as too old.
    const callers = await Promise.all(
      others.map(async ({ refreshToken }) => {
        const caller = overHttp2.open(service.publicUrl);
        await until(async () => message(await caller.call(refresh, {}, cookie(refreshToken))));
        return caller;
      }),
    );
    const listener = overHttp2.open(service.adminUrl);
    const update = (at: number) => {
      const change = { sessionId: others[at]?.sid ?? "", claims: { role: "reader" } };
      return listener.call(admin.updateSession, change, bearer(service.adminToken));
    };
    await until(async () => message(await update(0)));
    const agent = new Agent({ keepAlive: true });
    const counts = new Map<number, number>();
    let flooding = true;
    onTestFinished(() => {
      flooding = false;
    });
    const flood = Promise.all(
      Array.from({ length: 300 }, async () => {
        while (flooding) {
          const { status } = await send(service, user.refreshToken, agent);
          counts.set(status, (counts.get(status) ?? 0) + 1);
        }
      }),
    );
    await until(async () => {
      if ((counts.get(503) ?? 0) < 500 || (counts.get(200) ?? 0) < 500) throw new Error("not yet");
    });
    for (const [at, caller] of callers.entries()) {
      message(await update(at));
      message(await caller.call(logout, {}, bearer(others[at]?.accessToken ?? "")));
    }
    for (const caller of [...callers, listener]) caller.close();
    flooding = false;
    await flood;
    expect([...counts.keys()].sort()).toEqual([200, 503]);
    expect(refused(await metrics(service), "event_loop")).toBeGreaterThanOrEqual(500);
    // The service refuses calls until a turn of the event loop is on time again. On a busy machine that may take several turns.
    await until(async () => {
      if ((await send(service, user.refreshToken, agent)).status !== 200) throw new Error("still refused");
    });
    agent.destroy();
  });
});

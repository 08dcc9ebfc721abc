/** With `REDIS_WAIT_REPLICAS=1`, an acknowledged login or logout survives the loss of the master that it was written to. */
import { expect, onTestFinished, test } from "vitest";
import { SessionService } from "../../gen/auth/v1/session_pb.ts";
import { createVerifier, type Verifier } from "../../src/verifier/index.ts";
import { type RedisServer, startReplica, startSentinel } from "../support/redis.ts";
import type { Service } from "../support/service.ts";
import { admin, bearer, cookie, type LoggedIn, logIn } from "../support/sessions.ts";
import { until, untilTrue } from "../support/until.ts";
import { callersOf, deploy, ISSUER, outcomeOf, pick, startTestRedis } from "./support/deployment.ts";
import { CuttingProxy } from "./support/proxy.ts";
import { long, seconds } from "./support/run-length.ts";

const { refresh, logout } = SessionService.method;

/** Starts a replica, and waits until it has all data of its master. */
async function replicaOf(master: RedisServer): Promise<RedisServer> {
  const replica = await startReplica(master);
  onTestFinished(() => replica.stop());
  return replica;
}

async function startPair() {
  const master = await startTestRedis("--repl-diskless-sync-delay", "0");
  return { master, replica: await replicaOf(master) };
}

/** Starts two services, each with its own proxy to a master with one replica. */
async function startWorld() {
  const { master, replica } = await startPair();
  const proxies = [await CuttingProxy.to(master.port), await CuttingProxy.to(master.port)] as const;
  onTestFinished(async () => {
    await Promise.all(proxies.map((proxy) => proxy.stop()));
  });
  const { services, adminToken } = await deploy(2, { REDIS_WAIT_REPLICAS: "1", REDIS_COMMAND_TIMEOUT: "1s" }, (i) => ({
    REDIS_URL: `redis://127.0.0.1:${proxies[i]?.port}`,
  }));
  const promote = async () => {
    await replica.admin.replicaof("NO", "ONE");
    await replica.admin.config("SET", "repl-diskless-sync-delay", "0");
  };
  const moveTo = (proxy: CuttingProxy, server: RedisServer) => {
    proxy.target = server.port;
    proxy.cut();
  };
  return { master, replica, proxies, promote, moveTo, ...clientsOf(services, adminToken) };
}

function clientsOf(services: readonly Service[], adminToken: string) {
  const tryLogIn = (service: Service) => logIn({ ...service, adminToken });
  /** Logs a user in as soon as the service is available. */
  const newUser = (service: Service) => until(() => tryLogIn(service));
  /** Logs a user out. @returns `acknowledged`; undefined if the outcome is unknown */
  const logOut = async (service: Service, user: LoggedIn) => {
    const response = await callersOf(service).public.call(logout, {}, bearer(user.accessToken));
    const outcome = outcomeOf(response, () => "acknowledged" as const);
    if (outcome === undefined && !response.ok) expect(response.code).toBe("E503_UNAVAILABLE");
    return outcome;
  };
  /** Logs users out until one logout is acknowledged. Returns the user of that logout. */
  const acknowledgedLogout = (service: Service): Promise<LoggedIn> =>
    until(async () => {
      const user = await tryLogIn(service);
      if ((await logOut(service, user)) !== "acknowledged") throw new Error("no logout was acknowledged");
      return user;
    });
  /** Returns whether a session is live. Repeats the call while the service is unavailable. */
  const lives = async (service: Service, user: LoggedIn): Promise<boolean> => {
    const [refreshed, introspected] = await until(async () => {
      const response = await callersOf(service).public.call(refresh, {}, cookie(user.refreshToken));
      const refreshed = outcomeOf(response, () => "live");
      const introspection = await callersOf(service).admin.call(
        admin.introspectToken,
        { token: user.accessToken },
        bearer(adminToken),
      );
      const introspected = outcomeOf(introspection, ({ active }) => (active ? "live" : "dead"));
      if (refreshed === undefined || introspected === undefined) throw new Error("the service is unavailable");
      return [refreshed, introspected];
    });
    expect(introspected).toBe(refreshed);
    return refreshed === "live";
  };
  return { services, adminToken, tryLogIn, newUser, logOut, acknowledgedLogout, lives };
}

/** Logs users out until `over` returns true and the outcome of at least one logout is unknown. */
function logOutMany({ services, tryLogIn, logOut }: ReturnType<typeof clientsOf>, over: () => boolean) {
  const acknowledged: LoggedIn[] = [];
  const unknown: LoggedIn[] = [];
  const users = Array.from({ length: 16 }, async () => {
    while (!over() || unknown.length === 0) {
      const user = await tryLogIn(pick(services)).catch(() => undefined);
      if (user === undefined) continue;
      const outcome = await logOut(pick(services), user);
      (outcome === "acknowledged" ? acknowledged : unknown).push(user);
    }
  });
  return { acknowledged, unknown, finished: Promise.all(users) };
}

test("the master is killed under load and its replica promoted", async () => {
  const world = await startWorld();
  const {
    master,
    replica,
    proxies,
    services,
    adminToken,
    promote,
    moveTo,
    lives,
    logOut,
    tryLogIn,
    newUser,
    acknowledgedLogout,
  } = world;
  let over = false;
  const survivors = await Promise.all([newUser(pick(services)), newUser(pick(services))] as const);
  const running = logOutMany(world, () => over);
  const loaded = performance.now() + seconds(1, 20);
  // Users log in until the planned time is over and at least one logout was acknowledged, which may take longer on a busy machine.
  while (performance.now() < loaded || running.acknowledged.length === 0) await newUser(pick(services));
  await master.kill();
  await promote();
  for (const proxy of proxies) moveTo(proxy, replica);
  over = true;
  await running.finished;
  const { acknowledged, unknown } = running;
  console.log({ acknowledged: acknowledged.length, unknown: unknown.length });

  const alive: string[] = [];
  for (const user of acknowledged) if (await lives(pick(services), user)) alive.push(user.sid);
  expect(alive).toEqual([]);
  const { adminUrl } = pick(services);
  const verifier = createVerifier({ adminUrl, adminToken, issuer: ISSUER, audience: ISSUER });
  onTestFinished(() => verifier.close());
  await verifier.ready;
  for (const { accessToken } of acknowledged) {
    expect(await verifier.verify(accessToken)).toMatchObject({ reason: "revoked" });
  }

  // Without a replica, the master executes a logout but the service does not acknowledge it.
  const [service] = services as [Service];
  const [user, other] = survivors;
  expect(await logOut(service, user)).toBeUndefined();
  expect(await lives(service, user)).toBe(false);
  expect(await lives(service, other)).toBe(true);
  await expect(tryLogIn(service)).rejects.toThrow("E503_UNAVAILABLE");
  // The master accepts writes again as soon as it has a replica.
  await replicaOf(replica);
  await acknowledgedLogout(service);
});

if (long) {
  test("the master is killed under load and Sentinel promotes its replica", async () => {
    const { master, replica } = await startPair();
    const sentinel = await startSentinel(master);
    onTestFinished(() => sentinel.stop());
    await untilTrue(async () => ((await sentinel.admin.call("SENTINEL", "REPLICAS", "main")) as unknown[]).length > 0);
    const { services, adminToken } = await deploy(2, {
      REDIS_URL: `redis+sentinel://127.0.0.1:${sentinel.port}/main`,
      REDIS_WAIT_REPLICAS: "1",
      REDIS_COMMAND_TIMEOUT: "1s",
    });
    const clients = clientsOf(services, adminToken);
    const survivor = await clients.newUser(pick(services));
    let over = false;
    const running = logOutMany(clients, () => over);
    const loaded = performance.now() + seconds(1, 20);
    while (performance.now() < loaded || running.acknowledged.length === 0) await clients.newUser(pick(services));
    await master.kill();
    await untilTrue(async () => (await replica.admin.info("replication")).includes("role:master"));
    over = true;
    await running.finished;
    const { acknowledged, unknown } = running;
    console.log({ acknowledged: acknowledged.length, unknown: unknown.length });
    for (const user of acknowledged) expect(await clients.lives(pick(services), user)).toBe(false);
    for (const service of services) expect(await clients.lives(service, survivor)).toBe(true);
  });
}

test("a master that is cut off from its replica acknowledges nothing", async () => {
  const world = await startWorld();
  const { master, replica, proxies, services, promote, moveTo, lives, logOut, tryLogIn, newUser, acknowledgedLogout } =
    world;
  const [here, there] = services as [Service, Service];
  const early = await acknowledgedLogout(here);
  const both = await newUser(here);
  // An acknowledged logout means that the replica has all earlier writes as well, including the login above.
  await acknowledgedLogout(here);

  await promote();
  moveTo(proxies[1], replica);
  expect(await lives(there, both)).toBe(true);
  expect(await master.admin.info("replication")).toContain("connected_slaves:0");
  await expect(tryLogIn(here)).rejects.toThrow("E503_UNAVAILABLE");
  expect(await logOut(here, both)).toBeUndefined();
  moveTo(proxies[0], replica);
  expect(await lives(here, early)).toBe(false);
  // Writes to the old master that were not acknowledged, such as this logout, may be lost.
  expect(await lives(here, both)).toBe(true);
});

test("watchers of a master that may not write alone refuse what they cannot know", async () => {
  const {
    master,
    replica,
    proxies,
    services,
    adminToken,
    promote,
    moveTo,
    logOut,
    tryLogIn,
    newUser,
    acknowledgedLogout,
  } = await startWorld();
  const [here, there] = services as [Service, Service];
  await master.admin.config("SET", "min-replicas-to-write", "1");
  const verifiers = [here, there].map(({ adminUrl }) =>
    createVerifier({ adminUrl, adminToken, issuer: ISSUER, audience: ISSUER, policy: "refuse", maxStalenessMs: 1500 }),
  );
  onTestFinished(() => {
    for (const verifier of verifiers) verifier.close();
  });
  await Promise.all(verifiers.map(({ ready }) => ready));
  await acknowledgedLogout(here);
  const user = await newUser(here);
  for (const verifier of verifiers) await untilTrue(async () => (await verifier.verify(user.accessToken)).ok);

  await promote();
  moveTo(proxies[1], replica);
  const newReplica = await replicaOf(replica);
  await untilTrue(async () => (await logOut(there, user)) !== undefined);
  // The verifier follows the old master, so it does not see the logout, but refuses all tokens once its data is too old.
  const [onOld, onNew] = verifiers as [Verifier, Verifier];
  const reasons = async (verifier: Verifier) => {
    const verdict = await verifier.verify(user.accessToken);
    return verdict.ok ? "accepted" : verdict.reason;
  };
  await untilTrue(async () => (await reasons(onNew)) === "revoked");
  await untilTrue(async () => (await reasons(onOld)) !== "accepted");
  expect(await reasons(onOld)).toBe("unavailable");
  await expect(tryLogIn(here)).rejects.toThrow("E503_UNAVAILABLE");
  moveTo(proxies[0], replica);
  await untilTrue(async () => (await reasons(onOld)) !== "unavailable");
  expect(await reasons(onOld)).toBe("revoked");
  expect(await newReplica.admin.info("replication")).toContain("role:slave");
});

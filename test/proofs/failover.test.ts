/** `REDIS_WAIT_REPLICAS=1`: a login or logout that was acknowledged outlives the master that it was written to. */
import { setTimeout as pause } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { SessionService } from "../../gen/auth/v1/session_pb.ts";
import { createVerifier, type Verifier } from "../../src/verifier/index.ts";
import { type RedisServer, startReplica, startSentinel } from "../support/redis.ts";
import type { Service } from "../support/service.ts";
import { admin, bearer, cookie, type LoggedIn, logIn } from "../support/sessions.ts";
import { aRedis, deploy, doorsOf, ISSUER, pick, read } from "./support/deployment.ts";
import { CuttingProxy } from "./support/proxy.ts";
import { seconds } from "./support/run-length.ts";

const { refresh, logout } = SessionService.method;

/** A replica that has all that its master has, and says so. */
async function replicaOf(master: RedisServer): Promise<RedisServer> {
  const replica = await startReplica(master);
  onTestFinished(() => replica.stop());
  return replica;
}

async function aPair() {
  const master = await aRedis("--repl-diskless-sync-delay", "0");
  return { master, replica: await replicaOf(master) };
}

/** Two services that each have a way of their own to a master with one replica. */
async function aWorld() {
  const { master, replica } = await aPair();
  const ways = [await CuttingProxy.to(master.port), await CuttingProxy.to(master.port)] as const;
  onTestFinished(async () => {
    await Promise.all(ways.map((way) => way.stop()));
  });
  const { services, adminToken } = await deploy(2, { REDIS_WAIT_REPLICAS: "1", REDIS_COMMAND_TIMEOUT: "1s" }, (i) => ({
    REDIS_URL: `redis://127.0.0.1:${ways[i]?.port}`,
  }));
  const promote = async () => {
    await replica.admin.replicaof("NO", "ONE");
    await replica.admin.config("SET", "repl-diskless-sync-delay", "0");
  };
  const moveTo = (way: CuttingProxy, server: RedisServer) => {
    way.target = server.port;
    way.cut();
  };
  return { master, replica, ways, promote, moveTo, ...whatPeopleDo(services, adminToken) };
}

function whatPeopleDo(services: readonly Service[], adminToken: string) {
  const somebodyNew = (service: Service) => logIn({ ...service, adminToken });
  /** `acknowledged`; undefined where nobody knows. */
  const logOut = async (service: Service, user: LoggedIn) => {
    const answer = await doorsOf(service).public.call(logout, {}, bearer(user.accessToken));
    const outcome = read(answer, () => "acknowledged" as const);
    if (outcome === undefined && !answer.ok) expect(answer.code).toBe("E503_UNAVAILABLE");
    return outcome;
  };
  /** Whether a session lives, once somebody can tell. */
  const lives = async (service: Service, user: LoggedIn): Promise<boolean> => {
    for (;;) {
      const refreshed = read(await doorsOf(service).public.call(refresh, {}, cookie(user.refreshToken)), () => "live");
      const asked = await doorsOf(service).admin.call(
        admin.introspectToken,
        { token: user.accessToken },
        bearer(adminToken),
      );
      const introspected = read(asked, ({ active }) => (active ? "live" : "dead"));
      if (refreshed === undefined || introspected === undefined) continue;
      expect(introspected).toBe(refreshed);
      return refreshed === "live";
    }
  };
  return { services, adminToken, somebodyNew, logOut, lives };
}

/** Logs sessions out until `over`, and some have ended as nobody knows. */
async function logOutMany({ services, somebodyNew, logOut }: ReturnType<typeof whatPeopleDo>, over: () => boolean) {
  const acknowledged: LoggedIn[] = [];
  const unknown: LoggedIn[] = [];
  const users = Array.from({ length: 16 }, async () => {
    while (!over() || unknown.length === 0) {
      const user = await somebodyNew(pick(services)).catch(() => undefined);
      if (user === undefined) continue;
      const outcome = await logOut(pick(services), user);
      (outcome === "acknowledged" ? acknowledged : unknown).push(user);
    }
  });
  await Promise.all(users);
  return { acknowledged, unknown };
}

test("the master is killed under load and its replica promoted", async () => {
  const world = await aWorld();
  const { master, replica, ways, services, adminToken, promote, moveTo, lives, logOut, somebodyNew } = world;
  let over = false;
  const survivors = await Promise.all([somebodyNew(pick(services)), somebodyNew(pick(services))] as const);
  const running = logOutMany(world, () => over);
  const loaded = performance.now() + seconds(2, 20);
  while (performance.now() < loaded) await somebodyNew(pick(services));
  await master.kill();
  await promote();
  for (const way of ways) moveTo(way, replica);
  over = true;
  const { acknowledged, unknown } = await running;
  console.log({ acknowledged: acknowledged.length, unknown: unknown.length });
  expect(acknowledged.length).toBeGreaterThan(0);

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

  // One node is no replica: nothing is acknowledged, and what was asked for is done all the same.
  const [service] = services as [Service];
  const [user, other] = survivors;
  expect(await logOut(service, user)).toBeUndefined();
  expect(await lives(service, user)).toBe(false);
  expect(await lives(service, other)).toBe(true);
  await expect(somebodyNew(service)).rejects.toThrow("E503_UNAVAILABLE");
  // With another replica all is as before.
  await replicaOf(replica);
  while ((await logOut(service, await somebodyNew(service))) !== "acknowledged");
});

test("the master is killed under load and Sentinel promotes its replica", async () => {
  const { master, replica } = await aPair();
  const sentinel = await startSentinel(master);
  onTestFinished(() => sentinel.stop());
  while (((await sentinel.admin.call("SENTINEL", "REPLICAS", "main")) as unknown[]).length === 0) await pause(20);
  const { services, adminToken } = await deploy(2, {
    REDIS_URL: `redis+sentinel://127.0.0.1:${sentinel.port}/main`,
    REDIS_WAIT_REPLICAS: "1",
    REDIS_COMMAND_TIMEOUT: "1s",
  });
  const people = whatPeopleDo(services, adminToken);
  const survivor = await people.somebodyNew(pick(services));
  let over = false;
  const running = logOutMany(people, () => over);
  const loaded = performance.now() + seconds(1, 20);
  while (performance.now() < loaded) await people.somebodyNew(pick(services));
  await master.kill();
  while (!(await replica.admin.info("replication")).includes("role:master")) await pause(20);
  over = true;
  const { acknowledged, unknown } = await running;
  console.log({ acknowledged: acknowledged.length, unknown: unknown.length });
  expect(acknowledged.length).toBeGreaterThan(0);
  for (const user of acknowledged) expect(await people.lives(pick(services), user)).toBe(false);
  for (const service of services) expect(await people.lives(service, survivor)).toBe(true);
});

test("a master that was cut off and does not know it acknowledges nothing", async () => {
  const world = await aWorld();
  const { master, replica, ways, services, promote, moveTo, lives, logOut, somebodyNew } = world;
  const [here, there] = services as [Service, Service];
  let early = await somebodyNew(here);
  while ((await logOut(here, early)) !== "acknowledged") early = await somebodyNew(here);
  const both = await somebodyNew(here);
  // A logout waits for the replica, which then has what came before it.
  while ((await logOut(here, await somebodyNew(here))) !== "acknowledged");

  await promote();
  moveTo(ways[1], replica);
  expect(await lives(there, both)).toBe(true);
  expect(await master.admin.info("replication")).toContain("connected_slaves:0");
  await expect(somebodyNew(here)).rejects.toThrow("E503_UNAVAILABLE");
  expect(await logOut(here, both)).toBeUndefined();
  moveTo(ways[0], replica);
  expect(await lives(here, early)).toBe(false);
  // Nobody was told otherwise: where the old master is forgotten, so is what it never acknowledged.
  expect(await lives(here, both)).toBe(true);
});

test("a master that must not write alone takes its watchers' certainty with it", async () => {
  const { master, replica, ways, services, adminToken, promote, moveTo, logOut, somebodyNew } = await aWorld();
  const [here, there] = services as [Service, Service];
  await master.admin.config("SET", "min-replicas-to-write", "1");
  const verifiers = [here, there].map(({ adminUrl }) =>
    createVerifier({ adminUrl, adminToken, issuer: ISSUER, audience: ISSUER, policy: "refuse", maxStaleness: 1500 }),
  );
  onTestFinished(() => {
    for (const verifier of verifiers) verifier.close();
  });
  await Promise.all(verifiers.map(({ ready }) => ready));
  let user = await somebodyNew(here);
  while ((await logOut(here, user)) !== "acknowledged") user = await somebodyNew(here);
  for (;;) {
    user = await somebodyNew(here);
    const verdicts = await Promise.all(verifiers.map((verifier) => verifier.verify(user.accessToken)));
    if (verdicts.every(({ ok }) => ok)) break;
  }

  await promote();
  moveTo(ways[1], replica);
  const newReplica = await replicaOf(replica);
  while ((await logOut(there, user)) === undefined);
  // The one that follows the old master is not told, and stops believing that it would be.
  const [onOld, onNew] = verifiers as [Verifier, Verifier];
  const reasons = async (verifier: Verifier) => {
    const verdict = await verifier.verify(user.accessToken);
    return verdict.ok ? "accepted" : verdict.reason;
  };
  while ((await reasons(onNew)) !== "revoked") await pause(1);
  while ((await reasons(onOld)) === "accepted") await pause(1);
  expect(await reasons(onOld)).toBe("unavailable");
  await expect(somebodyNew(here)).rejects.toThrow("E503_UNAVAILABLE");
  moveTo(ways[0], replica);
  while ((await reasons(onOld)) === "unavailable") await pause(1);
  expect(await reasons(onOld)).toBe("revoked");
  expect(await newReplica.admin.info("replication")).toContain("role:slave");
});

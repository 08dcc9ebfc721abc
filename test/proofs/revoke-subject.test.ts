/**
 * All sessions of a subject are revoked while its clients refresh and log in: earlier sessions end, and those of later logins are live. Sessions
 * are updated meanwhile: a refresh has what the last update says, and access tokens from before it are refused.
 * The recorded history of real processes must be linearizable.
 */
import { setImmediate as turn } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { type Deployment, deploy, pick, startTestRedis } from "./support/deployment.ts";
import { findFault } from "./support/linearizability.ts";
import { CuttingProxy } from "./support/proxy.ts";
import { seconds } from "./support/run-length.ts";
import { type Held, SubjectClient } from "./support/subject-client.ts";
import { type SubjectOperation, show, subjectModel } from "./support/subject-model.ts";

/** Logs a user in, refreshes, and sometimes logs out. */
async function browse(client: SubjectClient): Promise<void> {
  for (let login = 0; login < 3; login++) {
    const held = await client.create();
    if (held === undefined) continue;
    const updates = pick([true, false]) ? updateAgain(client, held) : undefined;
    for (let left = pick([1, 2, 3, 4]); left > 0; left--) {
      if ((await client.refresh(held)) === "dead") break;
    }
    await updates;
    await pick([
      () => client.logout(held),
      () => client.revoke(held),
      () => client.revokeOthers(held),
      () => client.introspect(held),
      () => client.refresh(held),
      () => client.revokeSubject(held),
    ])();
  }
}

async function updateAgain(client: SubjectClient, held: Held): Promise<void> {
  for (let left = 2; left > 0; left--) {
    for (let turns = pick([0, 1, 5, 20]); turns > 0; turns--) await turn();
    await client.update(held);
  }
}

async function revokeAgainAndAgain(client: SubjectClient): Promise<void> {
  for (let left = 3; left > 0; left--) {
    for (let turns = pick([0, 1, 5, 20]); turns > 0; turns--) await turn();
    await client.revokeSubject();
  }
}

async function listSessions(client: SubjectClient): Promise<void> {
  for (let left = 4; left > 0; left--) await client.list();
}

/** Runs all operations at once, on one subject. */
async function contend(deployment: Deployment): Promise<readonly SubjectOperation[]> {
  const client = new SubjectClient(deployment);
  await Promise.all([
    browse(client),
    browse(client),
    browse(client),
    revokeAgainAndAgain(client),
    revokeAgainAndAgain(client),
    listSessions(client),
  ]);
  await client.list();
  return client.history;
}

const overlap = (a: SubjectOperation, b: SubjectOperation) => a.invokedAt < b.returnedAt && b.invokedAt < a.returnedAt;

/**
 * Runs the contending clients for many subjects, four subjects at a time, for at least `ms` and until every kind of race has
 * occurred.
 */
async function contendFor(ms: number, deployment: Deployment, { wantsUnknown = false } = {}) {
  const until = performance.now() + ms;
  const counts = { subjects: 0, operations: 0, updates: 0, unknown: 0, ended: 0, races: { create: 0, refresh: 0 } };
  const isEnough = () =>
    counts.ended > 0 &&
    Math.min(counts.races.create, counts.races.refresh) > 0 &&
    (counts.unknown > 0 || !wantsUnknown);
  const contenders = Array.from({ length: 4 }, async () => {
    while (performance.now() < until || !isEnough()) {
      const history = await contend(deployment);
      const fault = findFault(history, subjectModel);
      if (fault !== undefined) {
        throw new Error(
          `not linearizable:\n${show(history)}\n\nat best:\n${show(fault.order)}\n\n` +
            `leaves [${[...fault.state]}], which none of these can follow:\n${show(fault.next)}`,
        );
      }
      counts.subjects++;
      counts.operations += history.length;
      counts.updates += history.filter(({ input, output }) => input.verb === "update" && output === "live").length;
      counts.unknown += history.filter(({ output }) => output === undefined).length;
      for (const revocation of history) {
        if (revocation.input.verb !== "revokeSubject" || typeof revocation.output !== "number") continue;
        counts.ended += revocation.output;
        for (const verb of ["create", "refresh"] as const) {
          if (history.some((other) => other.input.verb === verb && overlap(revocation, other))) counts.races[verb]++;
        }
      }
    }
  });
  await Promise.all(contenders);
  console.log(counts);
  return counts;
}

/** Without a reuse interval every refresh writes. That is safe here, because each session has one client that never repeats a request. */
const STRICT = { REUSE_INTERVAL: "0" };

test("two services on one Redis", async () => {
  const { url } = await startTestRedis();
  const counts = await contendFor(seconds(1, 60), await deploy(2, { ...STRICT, REDIS_URL: url }));
  expect(counts.unknown).toBe(0);
});

test("two services on one Redis, while their connections to it are cut at random", async () => {
  const redis = await startTestRedis();
  const proxy = await CuttingProxy.to(redis.port);
  onTestFinished(() => proxy.stop());
  const deployment = await deploy(2, { ...STRICT, REDIS_URL: `redis://127.0.0.1:${proxy.port}` });
  const cutting = setInterval(() => proxy.cut(0.3), 100);
  await contendFor(seconds(1, 60), deployment, { wantsUnknown: true }).finally(() => clearInterval(cutting));
});

test("two services on one embedded store", async () => {
  const counts = await contendFor(seconds(1, 60), await deploy(2, STRICT));
  expect(counts.unknown).toBe(0);
});

test("services on one embedded store, killed and started again at random", async () => {
  const deployment = await deploy(3, STRICT);
  const { services } = deployment;
  let over = false;
  const killing = (async () => {
    while (!over) {
      const [victim] = services.splice(0, 1);
      await victim?.kill9();
      if (victim !== undefined) services.push(await victim.restart());
    }
  })();
  await contendFor(seconds(1, 60), deployment, { wantsUnknown: true }).finally(async () => {
    over = true;
    await killing;
  });
});

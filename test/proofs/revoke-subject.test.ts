/**
 * Everything of a subject revoked while it refreshes and logs in: what existed before ends, the new login lives.
 * Not by examples: whatever real processes answered must be explained by doing one thing after the other.
 */
import { setImmediate as turn } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { aRedis, type Deployment, deploy, pick } from "./support/deployment.ts";
import { findFault } from "./support/linearizability.ts";
import { CuttingProxy } from "./support/proxy.ts";
import { seconds } from "./support/run-length.ts";
import { SubjectClient } from "./support/subject-client.ts";
import { type SubjectOperation, show, subjectModel } from "./support/subject-model.ts";

/** Somebody who logs in, refreshes, and sometimes leaves. */
async function browse(client: SubjectClient): Promise<void> {
  for (let login = 0; login < 3; login++) {
    const held = await client.create();
    if (held === undefined) continue;
    for (let left = pick([1, 2, 3, 4]); left > 0; left--) {
      if ((await client.refresh(held)) === "dead") break;
    }
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

async function revokeAgainAndAgain(client: SubjectClient): Promise<void> {
  for (let left = 3; left > 0; left--) {
    for (let turns = pick([0, 1, 5, 20]); turns > 0; turns--) await turn();
    await client.revokeSubject();
  }
}

async function look(client: SubjectClient): Promise<void> {
  for (let left = 4; left > 0; left--) await client.list();
}

/** All of it at once, on one subject; afterwards everybody who is left sees the same. */
async function contend(deployment: Deployment): Promise<readonly SubjectOperation[]> {
  const client = new SubjectClient(deployment);
  await Promise.all([
    browse(client),
    browse(client),
    browse(client),
    revokeAgainAndAgain(client),
    revokeAgainAndAgain(client),
    look(client),
  ]);
  await client.list();
  return client.history;
}

const overlap = (a: SubjectOperation, b: SubjectOperation) => a.invokedAt < b.returnedAt && b.invokedAt < a.returnedAt;

/** Contends about one subject after the other, four at a time, until the time is over. */
async function contendFor(ms: number, deployment: Deployment) {
  const until = performance.now() + ms;
  const seen = { subjects: 0, operations: 0, unknown: 0, ended: 0, races: { create: 0, refresh: 0 } };
  const contenders = Array.from({ length: 4 }, async () => {
    while (performance.now() < until) {
      const history = await contend(deployment);
      const fault = findFault(history, subjectModel);
      if (fault !== undefined) {
        throw new Error(
          `not linearizable:\n${show(history)}\n\nat best:\n${show(fault.order)}\n\n` +
            `leaves [${[...fault.state]}], after which none can come of:\n${show(fault.next)}`,
        );
      }
      seen.subjects++;
      seen.operations += history.length;
      seen.unknown += history.filter(({ output }) => output === undefined).length;
      for (const revocation of history) {
        if (revocation.input.verb !== "revokeSubject" || typeof revocation.output !== "number") continue;
        seen.ended += revocation.output;
        for (const verb of ["create", "refresh"] as const) {
          if (history.some((other) => other.input.verb === verb && overlap(revocation, other))) seen.races[verb]++;
        }
      }
    }
  });
  await Promise.all(contenders);
  console.log(seen);
  expect(seen.ended).toBeGreaterThan(0);
  expect(Math.min(seen.races.create, seen.races.refresh)).toBeGreaterThan(0);
  return seen;
}

/** One browser per session and none of its answers repeated: every refresh writes. Nobody gives up on a slow machine. */
const STRICT = { REUSE_INTERVAL: "0", REDIS_COMMAND_TIMEOUT: "5s" };

test("two services on one Redis", async () => {
  const { url } = await aRedis();
  const seen = await contendFor(seconds(2, 60), await deploy(2, { ...STRICT, REDIS_URL: url }));
  expect(seen.unknown).toBe(0);
});

test("two services on one Redis, while their connections to it are cut at random", async () => {
  const redis = await aRedis();
  const proxy = await CuttingProxy.to(redis.port);
  onTestFinished(() => proxy.stop());
  const deployment = await deploy(2, { ...STRICT, REDIS_URL: `redis://127.0.0.1:${proxy.port}` });
  const cutting = setInterval(() => proxy.cut(0.3), 100);
  const seen = await contendFor(seconds(2, 60), deployment).finally(() => clearInterval(cutting));
  expect(seen.unknown).toBeGreaterThan(0);
});

test("two services on one embedded store", async () => {
  const seen = await contendFor(seconds(2, 60), await deploy(2, STRICT));
  expect(seen.unknown).toBe(0);
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
  const seen = await contendFor(seconds(2, 60), deployment).finally(async () => {
    over = true;
    await killing;
  });
  expect(seen.unknown).toBeGreaterThan(0);
});

/** Ends the sessions of many users while the service is in trouble: the command either completes or reports what is left to do. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { EXIT } from "../../../src/service/cli/context.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { type Service, scratch, startService, withKeys } from "../../support/service.ts";
import { logIn } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";
import { command, commandHere, type Running, startCommand } from "./command.ts";

const USERS = 300;

let redis: RedisServer;
let service: Service;
let env: Record<string, string>;
beforeAll(async () => {
  redis = await startRedis();
  service = await startService({
    ...{ DATA_DIR: withKeys(), REDIS_URL: redis.url, ADMIN_TOKENS: "admin".repeat(8) },
    ...{ ISSUER: "https://auth.example.com", RATE_LIMIT_CREATE: "off" },
    // Redis must count as unavailable only when a test stops it, and not because the machine is busy.
    ...{ REDIS_COMMAND_TIMEOUT: "2s", OVERLOAD_MAX_WAITING: "0", OVERLOAD_MAX_LOOP_DELAY: "0" },
  });
  env = { ADMIN_URL: service.adminUrl, ADMIN_TOKEN: service.adminToken };
});
beforeEach(async () => {
  redis.resume();
  await until(async () => {
    expect((await commandHere(["sessions", "end-all", "--everyone", "--yes"], { env })).code).toBe(0);
  });
});
afterAll(async () => {
  redis?.resume();
  await service?.stop();
  await redis?.stop();
});

async function users(count: number): Promise<readonly string[]> {
  const run = randomBytes(4).toString("hex");
  const subjects = Array.from({ length: count }, (_, at) => `${run}-${at}`);
  await Promise.all(subjects.map((subject) => until(() => logIn(service, { subject }))));
  return subjects;
}

const endAll = ["sessions", "end-all", "--subjects-from", "-"];
const isTryingAgain = (running: Running) => until(async () => expect(running.err()).toContain("trying again"));
const liveSessions = async () => (await commandHere(["sessions", "list", "--ids"], { env })).out;
const linesOf = (text: string) => text.split("\n").filter((line) => line !== "");

/** Starts a proxy in front of the admin API that passes on `count` calls, and afterwards only responds with a maintenance page. */
async function maintained(count: number): Promise<string> {
  let passed = 0;
  const proxy = createServer(async (request, response) => {
    const body = await buffer(request);
    if (++passed > count) return response.writeHead(503, { "content-type": "text/html" }).end("<p>back soon</p>");
    const { authorization = "" } = request.headers;
    const headers = { authorization, "content-type": request.headers["content-type"] ?? "" };
    const forwarded = await fetch(service.adminUrl + request.url, { method: "POST", headers, body });
    response.writeHead(forwarded.status, { "content-type": forwarded.headers.get("content-type") ?? "" });
    response.end(Buffer.from(await forwarded.arrayBuffer()));
  });
  onTestFinished(() => void proxy.close());
  await once(proxy.listen(0, "127.0.0.1"), "listening");
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
}

describe("the sessions of many users", () => {
  test("are ended although the store does not respond for a while", async () => {
    const subjects = await users(USERS);
    redis.pause();
    const running = startCommand(endAll, { env, input: subjects.join("\n") });
    await isTryingAgain(running);
    redis.resume();
    // The number of ended sessions is unknown, because an attempt without a response may have ended some.
    const out = expect.stringMatching(/^ended \d+ sessions of 300 users\n$/);
    expect(await running.ended).toMatchObject({ code: 0, out });
    expect(running.err()).toContain(`${service.adminUrl} responds: temporarily unavailable`);
    expect(running.err()).not.toContain("does not respond");
    expect(await liveSessions()).toBe("");
  });

  test("are reported as far as they were ended, and what is left is taken by the same option", async () => {
    const subjects = await users(USERS);
    const ADMIN_URL = await maintained(100);
    const args = [...endAll, "--retry-for", "0"];
    const { code, out, err } = await command(args, { env: { ...env, ADMIN_URL }, input: subjects.join("\n") });
    expect([code, err]).toEqual([
      EXIT.unavailable,
      expect.stringMatching(/^ended \d+ sessions of 100 users; left: 200 of 300; http:\S+ responds: HTTP 503\n$/),
    ]);
    expect(linesOf(out)).toHaveLength(200);
    expect(subjects).toEqual(expect.arrayContaining(linesOf(out)));
    expect(await command(endAll, { env, input: out })).toMatchObject({ code: 0, err: "" });
    expect(await liveSessions()).toBe("");
  });

  test("are left in a file when the work is interrupted, and from its beginning on", async () => {
    const subjects = await users(3);
    const file = join(scratch(), "users");
    writeFileSync(file, subjects.join("\n"));
    const again = ["sessions", "end-all", "--subjects-from", file, "--left", file];
    redis.pause();
    const running = startCommand(again, { env });
    await isTryingAgain(running);
    expect(linesOf(readFileSync(file, "utf8"))).toEqual(subjects);
    running.kill("SIGINT");
    expect(await running.ended).toMatchObject({ code: EXIT.failed, out: "" });
    expect(running.err()).toMatch(/\nended 0 sessions of 0 users; left: 3 of 3: they are in .*users; interrupted\n$/);
    expect(linesOf(readFileSync(file, "utf8"))).toEqual(subjects);
    redis.resume();
    await until(async () => expect((await commandHere(again, { env })).code).toBe(0));
    expect(readFileSync(file, "utf8")).toBe("");
  });

  test("are ended although one of them is refused, which is named and not tried again", async () => {
    const [one = "", other = ""] = await users(2);
    const tooLong = "x".repeat(300);
    const left = join(scratch(), "left");
    const input = [one, tooLong, other].join("\n");
    const { code, out, err } = await command([...endAll, "--left", left], { env, input });
    expect([code, out]).toEqual([EXIT.failed, "ended 2 sessions of 2 users\n"]);
    expect(err).toMatch(/^x+: subject: /);
    expect(readFileSync(left, "utf8")).toBe("");
    const json = await command([...endAll, "--json"], { env, input });
    expect(JSON.parse(json.out)).toEqual({
      ...{ subjects: 3, endedCount: 0, left: [] },
      refused: [{ subject: tooLong, reason: expect.stringContaining("subject") }],
    });
  });

  test("are not begun where the list of what is left cannot be written", async () => {
    const [one = ""] = await users(1);
    const left = join(scratch(), "missing", "left");
    const { code, err } = await command([...endAll, "--left", left], { env, input: one });
    expect([code, err, existsSync(left)]).toEqual([EXIT.failed, `--left: ${left} cannot be written (ENOENT)\n`, false]);
    expect(linesOf(await liveSessions())).toHaveLength(1);
    await command(endAll, { env, input: one });
  });

  test("with a wrong token are left at once", async () => {
    const wrong = { ...env, ADMIN_TOKEN: "x".repeat(40) };
    const { code, out, err } = await command(endAll, { env: wrong, input: "a\nb" });
    expect([code, out]).toEqual([EXIT.notAllowed, "a\nb\n"]);
    expect(err).toContain("does not accept the credential");
    expect(err).not.toContain("trying again");
  });
});

test("sessions whose ids were read are ended in the same way", async () => {
  await users(20);
  const ids = await liveSessions();
  redis.pause();
  const running = startCommand(["sessions", "end", "-", "--retry-for", "0"], { env, input: ids });
  expect(await running.ended).toMatchObject({ code: EXIT.unavailable, out: ids });
  expect(running.err()).toMatch(/^ended 0 of 20 sessions; left: 20 of 20; /);
  redis.resume();
  const again = startCommand(["sessions", "end", "-", "--json"], { env, input: ids });
  const { sessions, left, refused } = JSON.parse((await again.ended).out);
  expect([sessions.length, left, refused]).toEqual([20, [], []]);
  expect(await liveSessions()).toBe("");
});

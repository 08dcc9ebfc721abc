/** The exit codes of the commands that call the admin API, as docs/reference/command-line.md has them. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { type Service, startService, withKeys } from "../../support/service.ts";
import { until } from "../../support/until.ts";
import { commandHere, startCommand } from "./command.ts";

let redis: RedisServer;
let service: Service;
let env: Record<string, string>;
beforeAll(async () => {
  redis = await startRedis();
  const DATA_DIR = withKeys();
  // The test revokes a key. The feed reports this even while the store does not respond, so the feed has something to send in an outage.
  const ring = ["--file", join(DATA_DIR, "keys.json")];
  const { keys } = JSON.parse((await commandHere(["keys", "list", "--json", ...ring])).out);
  expect((await commandHere(["keys", "revoke", keys[0].kid, ...ring])).code).toBe(0);
  const more = { ADMIN_TOKENS: "admin".repeat(8), ISSUER: "https://auth.example.com", REDIS_COMMAND_TIMEOUT: "2s" };
  service = await startService({ DATA_DIR, REDIS_URL: redis.url, ...more });
  env = { ADMIN_URL: service.adminUrl, ADMIN_TOKEN: service.adminToken };
  const { out } = await commandHere(["sessions", "create", "--subject", "alice", "--json"], { env });
  env = { ...env, TOKEN: JSON.parse(out).accessToken };
});
afterAll(async () => {
  redis?.resume();
  await service?.stop();
  await redis?.stop();
});

const SESSION = `K${"A".repeat(22)}`;

const NOW_OR_NEVER = ["--retry-for", "0"];

const CALLS = [
  ["sessions", "list"],
  ["sessions", "show", SESSION],
  ["sessions", "events", "--session", SESSION],
  ["sessions", "end", SESSION, ...NOW_OR_NEVER],
  ["sessions", "end-all", "--subject", "bob", ...NOW_OR_NEVER],
  ["sessions", "end-all", "--everyone", "--yes", "--created-before", "2026-01-01", ...NOW_OR_NEVER],
  ["sessions", "unbind", SESSION],
  ["sessions", "update", SESSION, "--no-claims"],
  ["sessions", "update", "--subject", "bob", "--claim", "role=reader"],
  ["sessions", "create", "--subject", "bob"],
  ["subjects", "export", "--subject", "bob"],
  ["subjects", "forget", "--subject", "bob", "--yes", ...NOW_OR_NEVER],
  ["token", "verify"],
];

test.each([
  [["sessions", "show", "nonsense"]],
  [["sessions", "events", "--session", "nonsense"]],
  [["sessions", "end", "nonsense"]],
  [["sessions", "end-all", "--subject", "bob", "--except", "nonsense"]],
  [["sessions", "unbind", "nonsense"]],
  [["sessions", "update", "nonsense", "--no-claims"]],
  [["sessions", "create", "--subject", "bob", "--replaces", "nonsense"]],
])("a session id that is none is wrong usage: %j", async (args) => {
  const { code, out, err } = await commandHere(args, { env });
  expect([code, out, err]).toEqual([2, "", expect.stringContaining("session_id")]);
});

test.each([
  [["sessions", "show", SESSION]],
  [["sessions", "unbind", SESSION]],
  [["sessions", "update", SESSION, "--no-claims"]],
])("a session that is not live is no wrong usage: %j", async (args) => {
  expect((await commandHere(args, { env })).code).toBe(1);
});

describe("what is not known has a code of its own", () => {
  test.each(CALLS.map((args) => [args]))("where the admin API does not run: %j", async (args) => {
    const { code, out } = await commandHere(args, { env: { ...env, ADMIN_URL: "http://127.0.0.1:1" } });
    expect([code, out]).toEqual([3, ""]);
  });

  test.each([404, 500])("whether a token is accepted, where what responds %d is no admin API", async (status) => {
    const other = createServer((_, response) => response.writeHead(status, { "content-type": "text/html" }).end("<p>"));
    onTestFinished(() => void other.close());
    await once(other.listen(0, "127.0.0.1"), "listening");
    const ADMIN_URL = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
    const { code, out } = await commandHere(["token", "verify"], { env: { ...env, ADMIN_URL } });
    expect([code, out]).toEqual([3, ""]);
  });

  test("where Redis does not respond", async () => {
    redis.pause();
    const ended = await Promise.all(CALLS.map(async (args) => ({ args, ...(await commandHere(args, { env })) })));
    expect(ended.map(({ args, code, out }) => ({ args, code, out }))).toEqual(
      CALLS.map((args) => ({ args, code: 3, out: "" })),
    );
    // The feed notices the outage only at its next read of the store, so the command `watch` is repeated until it fails.
    const watchOnce = () => {
      const watching = startCommand(["watch", "--once"], { env });
      onTestFinished(() => watching.kill("SIGKILL"));
      return watching.ended;
    };
    await until(async () => expect((await watchOnce()).code).toBe(3));
  });
});

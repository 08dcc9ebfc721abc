import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, onTestFinished, test } from "vitest";
import { WatchRevocationsResponseSchema } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { createFeedPrinter } from "../../../src/service/cli/watch/run.ts";
import { freePort } from "../../support/free-port.ts";
import { startService } from "../../support/service.ts";
import { until } from "../../support/until.ts";
import { command, type Running, startCommand } from "./command.ts";

/** Resolves when the output of the command contains a text. */
const seen = (running: Running, text: string) =>
  until(async () => {
    if (!(running.out() + running.err()).includes(text)) throw new Error("not yet");
  });

async function createdSession(env: Record<string, string>): Promise<string> {
  const { out } = await command(["sessions", "create", "--subject", "alice", "--json"], { env });
  return JSON.parse(out).session.sessionId;
}

test("endings are printed as they happen, over a restart of the service, each once", async () => {
  const service = await startService({ ADMIN_TOKENS: "admin".repeat(8), ADMIN_PORT: String(await freePort()) });
  let running = service;
  onTestFinished(() => void running.kill("SIGKILL"));
  const env = { ADMIN_URL: service.adminUrl, ADMIN_TOKEN: service.adminToken };
  const [before, first, second] = [await createdSession(env), await createdSession(env), await createdSession(env)];
  await command(["sessions", "end", before], { env });

  const all = startCommand(["watch", "--json"], { env });
  const fresh = startCommand(["watch", "--new"], { env });
  await Promise.all([seen(all, before), seen(fresh, "connected to")]);
  await command(["sessions", "end", first], { env });
  await Promise.all([seen(all, first), seen(fresh, first)]);

  await service.stop();
  running = await service.restart();
  await seen(all, "again");
  await command(["sessions", "end", second], { env });
  await Promise.all([seen(all, second), seen(fresh, second)]);
  all.kill("SIGTERM");
  fresh.kill("SIGTERM");
  const lines = (await all.ended).out
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines.map(({ sessionId, event, reason }) => [event, sessionId, reason])).toEqual([
    ["session_ended", before, "revoked_by_admin"],
    ["session_ended", first, "revoked_by_admin"],
    ["session_ended", second, "revoked_by_admin"],
  ]);
  const { out } = await fresh.ended;
  expect(out).not.toContain(before);
  expect(out).toMatch(
    new RegExp(`^\\d{4}-\\S+Z  revoked_by_admin +${first}\n\\d{4}-\\S+Z  revoked_by_admin +${second}\n$`),
  );

  await command(["sessions", "end-all", "--everyone", "--yes"], { env });
  const once = await command(["watch", "--once"], { env });
  expect([once.code, once.out]).toEqual([0, expect.stringContaining("every session that was created until")]);
  await running.stop();
});

test("a beginning of several batches is no outage of the store", () => {
  const notes: string[] = [];
  const print = createFeedPrinter({ print: () => {}, note: (text) => void notes.push(text) }, {});
  for (const caughtUp of [false, true, false, true]) print(create(WatchRevocationsResponseSchema, { caughtUp }));
  expect(notes).toEqual(["the store does not respond: endings may be missing", "the feed is current again"]);
});

test("an ending that the feed repeats in the ms in which it forgets it is printed once", () => {
  const printed: string[] = [];
  const print = createFeedPrinter({ print: (text) => void printed.push(text), note: () => {} }, {});
  const time = timestampFromMs(1_000);
  const batch = { revocations: [{ sessionId: "one", revokeTime: time, expireTime: time }], asOfTime: time };
  for (let i = 0; i < 2; i++) print(create(WatchRevocationsResponseSchema, batch));
  expect(printed).toHaveLength(1);
});

test("a change of a session is printed once for each version", () => {
  const printed: string[] = [];
  const print = createFeedPrinter({ print: (text) => void printed.push(text), note: () => {} }, { json: true });
  const [markTime, expireTime] = [timestampFromMs(1_000), timestampFromMs(9_000)];
  const mark = (minVersion: number) => ({ sessionId: "one", minVersion, markTime, expireTime });
  for (const staleTokens of [[mark(1)], [mark(1), mark(2)]])
    print(create(WatchRevocationsResponseSchema, { staleTokens }));
  const event = { event: "session_changed", sessionId: "one", markTime: "1970-01-01T00:00:01.000Z" };
  expect(printed.map((line) => JSON.parse(line))).toEqual([1, 2].map((minVersion) => ({ ...event, minVersion })));
});

test("a watch that cannot begin ends with what is wrong", async () => {
  const ADMIN_TOKEN = "x".repeat(40);
  expect((await command(["watch", "--url", "http://127.0.0.1:1"], { env: { ADMIN_TOKEN } })).code).toBe(3);
  expect((await command(["watch", "--new", "--once"], { env: { ADMIN_TOKEN } })).code).toBe(2);
});

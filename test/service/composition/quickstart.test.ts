/** The commands with which the service and README.md begin work when they are pasted into a shell. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { scratch, startService, waitFor } from "../../support/service.ts";

test.each<[string, Record<string, string>]>([
  ["as it is", {}],
  ["with a data directory of an odd name", { DATA_DIR: join(scratch(), "it's a $HOME") }],
])("%s: the printed command creates a session", async (_, env) => {
  const service = await startService(env);
  const text = await waitFor(service, () => /^Try it.*\n[\s\S]*/m.exec(service.stdout())?.[0]);
  const lines = text.trimEnd().split("\n");
  expect(lines.length).toBeLessThanOrEqual(5);
  // The environment is otherwise empty, because a user's configuration of curl could change the result.
  const options = { input: lines[1], encoding: "utf8", env: { PATH: process.env.PATH, HOME: scratch() } } as const;
  const shell = spawnSync("sh", options);
  await service.stop();
  expect(shell.stderr).toBe("");
  expect(JSON.parse(shell.stdout)).toMatchObject({ session: { subject: "alice" }, accessToken: expect.any(String) });
});

test("the first session of README.md ends with a refresh that is refused", async () => {
  const service = await startService();
  const page = readFileSync(new URL("../../../README.md", import.meta.url), "utf8");
  const section = page.split(/^## /m).find((part) => part.startsWith("A first session\n")) ?? "";
  const blocks = [...section.matchAll(/^```sh\n(.*?)^```/gms)].map(([, commands]) => commands);
  const input = blocks
    .join("")
    .replaceAll("http://127.0.0.1:8080", service.publicUrl)
    .replaceAll("http://127.0.0.1:8081", service.adminUrl)
    .replaceAll("data/admin-token", join(service.dataDir, "admin-token"));
  const shell = spawnSync("sh", { cwd: scratch(), input, encoding: "utf8", env: { PATH: process.env.PATH } });
  await service.stop();
  expect(shell.stderr).toBe("");
  expect(shell.stdout.trimEnd().split("\n")).toEqual([
    expect.stringMatching(/^\{"data":\{"accessToken":"[^"]+"\}\}$/),
    expect.stringMatching(/^\{"data":\{"sessions":\[\{.*"displayName":"laptop".*\]/),
    '{"data":{}}',
    '{"error":{"code":"E001_AUTH_FAILURE","message":"authentication failed"}}',
  ]);
});

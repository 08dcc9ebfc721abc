/** The commands of the quickstart, which the service prints and README.md has, work when they are pasted into a shell. */
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { scratch, startService, waitFor } from "../../support/service.ts";

/** Matches everything below the line that introduces the quickstart. */
const QUICKSTART = /^Try it.*\n([\s\S]*rm cookies\.txt\n)/m;

test.each<[string, Record<string, string>]>([
  ["as it is", {}],
  ["with another cookie name", { COOKIE_NAME: "__Secure-rt" }],
  ["with a data directory of an odd name", { DATA_DIR: join(scratch(), "it's a $HOME") }],
])("%s: sessions and refreshes are served, and after the logout refused", async (_, env) => {
  const service = await startService(env);
  const script = await waitFor(service, () => QUICKSTART.exec(service.stdout())?.[1]);
  const cwd = scratch();
  // The environment is otherwise empty, because a user's configuration of curl could change the result.
  const shell = spawnSync("sh", { cwd, input: script, encoding: "utf8", env: { PATH: process.env.PATH, HOME: cwd } });
  await service.stop();
  expect(shell.stderr).toBe("");
  const refused = '{"error":{"code":"E001_AUTH_FAILURE","message":"authentication failed"}} 401';
  const accessToken = expect.stringMatching(/^\{"data":\{"accessToken":"[^"]+"\}\}$/);
  expect(shell.stdout.trimEnd().split("\n")).toEqual([
    accessToken,
    accessToken,
    expect.stringMatching(/^\{"data":\{"sessions":\[\{.*"current":true[,}].*\],"nextPageToken":""\}\}$/),
    '{"data":{}} 200',
    refused,
    refused,
  ]);
  expect(readdirSync(cwd)).toEqual([]);
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

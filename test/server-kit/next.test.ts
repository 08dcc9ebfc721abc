/** `examples/next`, built and started by Next.js. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { bearer, logIn } from "../support/sessions.ts";
import { describeApplication } from "./application-tests.ts";

describeApplication("next", (running) => {
  test("its types are right", async () => {
    const project = running().built.path;
    const compiled = await promisify(execFile)("tsc", ["-p", project]).catch((error: { stdout: string }) => error);
    expect(compiled.stdout).toBe("");
  });

  test("a route handler takes bearer tokens", async () => {
    const { service, url } = running();
    const { accessToken } = await logIn(service, { subject: "alice", claims: { role: "editor" } });
    const response = await fetch(`${url}/api/hello`, { headers: bearer(accessToken) });
    expect([response.status, await response.json()]).toEqual([200, { hello: "alice" }]);
    expect((await fetch(`${url}/api/hello`)).status).toBe(401);
  });
});

/** `examples/next`, built and started by Next.js. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { compileProject } from "../support/compiler.ts";
import { bearer, logIn } from "../support/sessions.ts";
import { buildApplication, startApplication } from "./application.ts";
import { describeApplication } from "./application-tests.ts";

/** The time limit of a test that builds an application, because compiling takes long on a busy machine. */
const BUILD_TIMEOUT_MS = 300_000;

describeApplication("next", (running) => {
  test("its types are right", async () => {
    expect(await compileProject(running().built.path)).toBe("");
  });

  test("a route handler takes bearer tokens", async () => {
    const { service, url } = running();
    const { accessToken } = await logIn(service, { subject: "alice", claims: { role: "editor" } });
    const response = await fetch(`${url}/api/hello`, { headers: bearer(accessToken) });
    expect([response.status, await response.json()]).toEqual([200, { hello: "alice" }]);
    expect((await fetch(`${url}/api/hello`)).status).toBe(401);
  });

  test(
    "with Cache Components, the static shell knows nobody, and the page has its user, without an error in the log",
    async () => {
      const built = await buildApplication("next", {}, join(import.meta.dirname, "fixtures/cache-components"));
      const application = await startApplication(built, {});
      const shell = readFileSync(join(built.path, ".next/server/app/index.html"), "utf8");
      expect(shell).toContain('<p id="session">unknown</p>');
      const cookie = "access_token=a";
      for (const prefetch of [{}, { rsc: "1", "next-router-prefetch": "2" }])
        expect((await fetch(application.url, { headers: { cookie, ...prefetch } })).status).toBe(200);
      const page = await (await fetch(application.url, { headers: { cookie } })).text();
      expect(page).toContain('<p id="session">Signed in as alice</p>');
      await application.program.stop();
      // Next.js reports code that reads the clock while it prerenders.
      expect(application.program.output()).not.toMatch(/error/i);
      built.remove();
    },
    BUILD_TIMEOUT_MS,
  );
});

/**
 * The verifier in the development server of Cloudflare's Workers, whose runtime forbids timers, random values, `fetch` and even abort
 * signals in the global scope, and their use in another request than the one that created them.
 */
import { createRequire } from "node:module";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Service, startService } from "../support/service.ts";
import { admin, bearer, logIn, message, openAdmin } from "../support/sessions.ts";
import { until } from "../support/until.ts";
import { bundle } from "./bundle.ts";
import { programOf } from "./installed.ts";

type Miniflare = {
  readonly ready: Promise<URL>;
  dispose(): Promise<void>;
};
type Module = { readonly Miniflare: new (options: object) => Miniflare };
const { Miniflare } = createRequire(join(import.meta.dirname, "node_modules"))("miniflare") as Module;

const { code } = await bundle("isolate.ts", ["workerd", "worker", "browser"]);

let service: Service;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

describe.each([
  ["of its own version of workerd", undefined, "2026-07-30", []],
  ["of its own version of workerd, with the compatibility with Node", undefined, "2026-07-30", ["nodejs_compat"]],
  ["of the newest workerd", programOf("@cloudflare/workerd-*/bin/workerd"), "2026-11-01", []],
])("an isolate %s", (_, workerd, compatibilityDate, compatibilityFlags) => {
  let url: string;
  let miniflare: Miniflare;
  beforeAll(async () => {
    const { adminUrl, adminToken, publicUrl: issuer } = service;
    const options = { adminUrl, adminToken, issuer, audience: issuer, policy: "refuse", pollIntervalMs: 20 };
    const script = `const OPTIONS = ${JSON.stringify(options)};\n${code}`;
    if (workerd !== undefined) process.env.MINIFLARE_WORKERD_PATH = workerd;
    miniflare = new Miniflare({ modules: true, script, compatibilityDate, compatibilityFlags, cf: false, port: 0 });
    url = String(await miniflare.ready);
    delete process.env.MINIFLARE_WORKERD_PATH;
  });
  afterAll(() => miniflare?.dispose());

  const request = async (path: string, token = "") => {
    const response = await fetch(new URL(path, url), { headers: { authorization: `Bearer ${token}` } });
    return { status: response.status, text: await response.text() };
  };

  test("has a verifier of the global scope, which accepts a token until its session ends", async () => {
    const { accessToken, sid, subject } = await logIn(service);
    for (let turn = 0; turn < 3; turn++) {
      expect(await request("/", accessToken)).toEqual({ status: 200, text: subject });
    }
    const beside = Array.from({ length: 5 }, () => request("/", accessToken));
    for (const { text } of await Promise.all(beside)) expect(text).toBe(subject);
    message(await openAdmin(service).call(admin.revokeSession, { sessionId: sid }, bearer(service.adminToken)));
    await until(async () => expect((await request("/", accessToken)).status).toBe(401));
  });

  test("refuses a verifier that would follow the feed there, and names the option to set", async () => {
    expect((await request("/refusal")).text).toMatch(/^TypeError: createVerifier: pollIntervalMs is required/);
  });
});

/** The tests that must pass in every runtime. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Service, startService } from "../support/service.ts";
import { admin, bearer, logIn, message, openAdmin } from "../support/sessions.ts";
import { until } from "../support/until.ts";
import type { Running } from "./commands.ts";
import type { Live } from "./suite.ts";

const vectors: unknown = JSON.parse(readFileSync(join(import.meta.dirname, "../vectors/verifier.json"), "utf8"));

type Started = {
  readonly running: Running;
  readonly adminUrl: string;
  /** An access token that the browser kit has obtained in this runtime. */
  readonly kitToken?: unknown;
};

type Runtime = {
  readonly name: string;
  /** @param service the service; the runtime reaches its admin API at the returned `adminUrl` */
  start(service: Service): Promise<Started>;
  readonly isNode?: boolean;
  readonly hasKit?: boolean;
  /** Options of a verifier that follows a running service. */
  readonly live: Partial<Live>;
};

export function describeRuntime({ name, start, isNode = false, hasKit = false, live }: Runtime): void {
  describe(name, () => {
    let service: Service;
    let running: Running;
    let started: Started;
    beforeAll(async () => {
      service = await startService();
      started = await start(service);
      running = started.running;
    });
    afterAll(async () => {
      await running?.stop();
      await service?.stop();
    });

    test(`gets the verifier ${isNode ? "of Node" : "that imports nothing of Node"}`, async () => {
      expect(await running.run("isNode")).toBe(isNode);
    });

    test("reaches the same verdicts", async () => {
      expect(await running.run("vectors", vectors)).toEqual([]);
    });

    test("serves and calls the JSON routes", async () => {
      const echoed = { stringValue: "ä€", int64Value: "1152921504606846976" };
      expect(await running.run("routes")).toEqual({ ...echoed, numbers: [1, 2, 3], failure: 5 });
    });

    test("accepts a token until its session ends", async () => {
      const { adminToken, publicUrl } = service;
      await running.run("follow", {
        adminUrl: started.adminUrl,
        adminToken,
        issuer: publicUrl,
        ...live,
      } satisfies Live);
      const [ended, kept] = [await logIn(service), await logIn(service)];
      for (const { accessToken, subject } of [ended, kept])
        expect(await running.run("verify", accessToken)).toBe(subject);
      message(await openAdmin(service).call(admin.revokeSession, { sessionId: ended.sid }, bearer(adminToken)));
      await until(async () => expect(await running.run("verify", ended.accessToken)).toBe("revoked"));
      expect(await running.run("verify", kept.accessToken)).toBe(kept.subject);
      if (hasKit) expect(await running.run("verify", started.kitToken)).toMatch(/^subject-/);
    });
  });
}

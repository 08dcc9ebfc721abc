/** An application on Fastify that starts while the session service is away. docs/tasks/server-side.md has both forms. */
import Fastify from "fastify";
import { afterAll, expect, test } from "vitest";
import { createVerifier } from "../../src/verifier/index.ts";
import { freePort } from "../support/free-port.ts";
import { type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let service: Service | undefined;
afterAll(() => service?.stop());

test("an application listens while the service is away, and is ready when it is back; a plugin that waits for it ends the start", async () => {
  const [port, adminPort] = [await freePort(), await freePort()];
  const adminToken = "a".repeat(40);
  const issuer = `http://127.0.0.1:${port}`;
  const adminUrl = `http://127.0.0.1:${adminPort}`;
  const verifier = createVerifier({ adminUrl, adminToken, issuer, audience: issuer });

  const waiting = Fastify({ pluginTimeout: 50 });
  waiting.register(async () => verifier.ready);
  await expect(waiting.ready()).rejects.toMatchObject({ code: "FST_ERR_PLUGIN_TIMEOUT" });
  await waiting.close().catch(() => {});

  const app = Fastify();
  let isReady = false;
  verifier.ready.then(() => {
    isReady = true;
  });
  app.get("/readyz", async (_request, reply) => reply.code(isReady ? 200 : 503).send());
  await app.listen({ port: 0, host: "127.0.0.1" });
  const status = async () => (await app.inject("/readyz")).statusCode;
  expect(await status()).toBe(503);
  service = await startService({ PORT: String(port), ADMIN_PORT: String(adminPort), ADMIN_TOKENS: adminToken });
  await until(async () => expect(await status()).toBe(200));
  await app.close();
  verifier.close();
});

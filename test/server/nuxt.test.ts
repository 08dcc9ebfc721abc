/** The return values of the adapter for Nuxt, on which h3 depends. */
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { expect, test } from "vitest";
import { sessionHandler } from "../../src/server/nuxt.ts";
import { aService } from "../support/every-protocol.ts";
import { aServer, aVerifier, COOKIES } from "./world.ts";

const service = aService(COOKIES);
const kept = aVerifier(service);

test("the kit's own response is returned: h3 2 calls the next handler after one that returns nothing", async () => {
  const handler = sessionHandler(aServer(service, kept.verifier).sessions);
  const req = new IncomingMessage(new Socket());
  const res = new ServerResponse(req);
  Object.assign(req, { method: "GET", url: "/account", headers: { accept: "text/html" } });
  const own = await handler({ node: { req, res }, context: {} });
  expect([own?.status, own?.headers.get("location")]).toEqual([303, "/login?next=%2Faccount"]);
  expect(res.headersSent).toBe(false);
});

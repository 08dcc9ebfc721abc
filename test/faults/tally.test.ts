/** What a simulated browser counts as a response. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { PATIENCE_MS } from "../support/patience.ts";
import { inTime } from "../support/until.ts";
import { exchange, newTally } from "./tally.ts";

// Set before the modules are loaded.
vi.hoisted(() => {
  process.env.EVENT_MS = "20";
});

test("a patient browser waits for longer than tests wait for other events", async () => {
  const server = createServer(async (_, response) => {
    // The limits of two events pass, one after the other.
    for (let event = 0; event < 2; event++) await inTime("nothing", new Promise(() => {})).catch(() => {});
    response.end();
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const tally = newTally(PATIENCE_MS);
  expect(await exchange(tally, `http://127.0.0.1:${port}`, "GET", "/", {})).toMatchObject({ status: 200 });
  expect(tally).toMatchObject({ requests: 1, unavailable: 0 });
});

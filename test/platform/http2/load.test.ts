/** Many concurrent requests over HTTP/2 while the instance that serves them stops: none is refused, none fails. */
import { expect, onTestFinished, test } from "vitest";
import { startBalancer } from "../../support/balancer.ts";
import { healthClient } from "../../support/health-client.ts";
import { http2Client } from "../../support/http2-client.ts";
import { startService } from "../../support/service.ts";

const CONNECTIONS = 4;
const STREAMS = 20;
/** After this many requests of each client, the test stops the instance. */
const UNDER_WAY = 50;

type Client = { send(): Promise<string>; close(): void };

function nodeClient(url: string): Client {
  const client = http2Client(url);
  return {
    close: () => client.close(),
    send: () =>
      client.send({ ":path": "/healthz" }).then(
        ({ status }) => (status === 200 ? "served" : String(status)),
        (error: Error) => error.message,
      ),
  };
}

function grpcClient(url: string): Client {
  const client = healthClient(url);
  return {
    close: () => client.close(),
    // During the drain, NOT_SERVING is a valid response of a health check.
    send: async () => ((await client.check("")).endsWith("SERVING") ? "served" : "failed"),
  };
}

/** Keeps `STREAMS` requests open at any time until it is stopped. */
function startLoad(client: Client) {
  const results = new Map<string, number>();
  let [stopping, sent] = [false, 0];
  const underWay = Promise.withResolvers<void>();
  const streams = Array.from({ length: STREAMS }, async () => {
    while (!stopping) {
      const result = await client.send();
      results.set(result, (results.get(result) ?? 0) + 1);
      if (++sent === UNDER_WAY) underWay.resolve();
    }
  });
  return {
    underWay: underWay.promise,
    async stop() {
      stopping = true;
      await Promise.all(streams);
      client.close();
      return results;
    },
  };
}

test.each([
  ["node:http2", nodeClient],
  ["grpc-js", grpcClient],
] as const)("requests of %s", async (_, open) => {
  const balancer = await startBalancer();
  onTestFinished(() => balancer.close());
  // To end an HTTP/2 connection takes three round trips. The drain is long enough for them even on a busy machine.
  const [leaving, staying] = [await startService({ DRAIN_DELAY: "5s" }), await startService()];
  onTestFinished(async () => void (await staying.stop()));
  await balancer.add(leaving.publicUrl);
  const loads = Array.from({ length: CONNECTIONS }, () => startLoad(open(balancer.url)));
  await Promise.all(loads.map(({ underWay }) => underWay));
  await balancer.add(staying.publicUrl);
  expect(await leaving.stop()).toEqual({ code: 0, signal: null });
  balancer.remove(leaving.publicUrl);
  const results = await Promise.all(loads.map((load) => load.stop()));
  expect(results.map((counts) => [...counts.keys()])).toEqual(loads.map(() => ["served"]));
});

import { once } from "node:events";
import { type ClientHttp2Stream, connect, createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { respond } from "../../../src/platform/listener/handler.ts";
import { withPages } from "../../../src/platform/listener/layers.ts";
import { metricsPage } from "../../../src/service/composition/metrics-page.ts";
import { createMetrics } from "../../../src/service/observability/metrics.ts";
import { until } from "../../support/until.ts";

/** Serves the metrics page on a server of its own, and counts how often the page was rendered. */
async function serve() {
  const metrics = createMetrics();
  const rendered = { count: 0 };
  const counted = {
    ...metrics,
    expose: () => {
      rendered.count++;
      return metrics.expose();
    },
  };
  const pages = new Map([["/metrics", metricsPage(counted, undefined)]]);
  const server = createServer(
    withPages(
      pages,
      () => [],
      (_, response) => respond(response, 404, {}),
    ),
  );
  await once(server.listen(0, "127.0.0.1"), "listening");
  // The client's HTTP/2 window is zero, so the server cannot send the body yet.
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, {
    settings: { initialWindowSize: 0 },
  });
  onTestFinished(() => {
    client.destroy();
    server.close();
  });
  return { client, rendered };
}

const headOf = (stream: ClientHttp2Stream) => once(stream, "response");

test("readers that take nothing share one page, and who comes after them gets a new one", async () => {
  const { client, rendered } = await serve();
  const streams = Array.from({ length: 20 }, () => client.request({ ":path": "/metrics" }));
  await Promise.all(streams.map(headOf));
  expect(rendered.count).toBe(1);
  for (const stream of streams) stream.close();
  await until(async () => {
    const later = client.request({ ":path": "/metrics" });
    await headOf(later);
    later.close();
    expect(rendered.count).toBe(2);
  });
});

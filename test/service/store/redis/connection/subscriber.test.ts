import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { createRedisConnections, disconnect } from "../../../../../src/service/store/redis/connection/connection.ts";
import { target } from "../../../../support/store/backends.ts";
import { server } from "../../../../support/store/redis.ts";

test("subscriptions that come and go leave nothing at the client that they follow", async () => {
  const { url } = await server();
  const connections = createRedisConnections(target(url), 500);
  onTestFinished(() => connections.close());
  const client = connections.connect();
  onTestFinished(() => disconnect(client));
  await once(client, "ready");
  if ("nodes" in client) throw new TypeError("one server has no nodes");
  const before = client.listenerCount("close");
  for (let time = 0; time < 3; time++) {
    const subscriber = connections.connectSubscriber(client);
    await once(subscriber, "ready");
    expect(client.listenerCount("close")).toBe(before + 1);
    const ended = once(subscriber, "end");
    disconnect(subscriber);
    await ended;
    expect(client.listenerCount("close")).toBe(before);
  }
});

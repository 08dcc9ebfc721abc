/** The request that a service makes to itself before it is ready. */
import { afterEach, expect, test } from "vitest";
import { type Handler, type Listener, openListener, respond } from "../../../src/platform/listener/listener.ts";
import { warmUp } from "../../../src/platform/listener/warm-up.ts";

const listeners: Listener[] = [];
afterEach(async () => {
  await Promise.all(listeners.splice(0).map((listener) => listener.close(0)));
});

async function opened(handler: Handler): Promise<Listener> {
  const listener = await openListener("test", "127.0.0.1", 0);
  listeners.push(listener);
  listener.serve(handler);
  return listener;
}

test("each listener is asked once, and its connection is over", async () => {
  const asked: (string | undefined)[] = [];
  const handler: Handler = ({ url }, response) => {
    asked.push(url);
    respond(response, 200, {}, "x");
  };
  const both = [await opened(handler), await opened(handler)];
  await warmUp(both);
  expect(asked).toEqual(["/healthz", "/healthz"]);
  expect(both.map(({ connections }) => connections())).toEqual([0, 0]);
});

test("a listener that drops the connection, or does not exist, fails nothing", async () => {
  const dropping = await opened(({ socket }) => socket.destroy());
  await warmUp([dropping, { url: "http://127.0.0.1:1", scheme: "http" }]);
});

test("a listener with TLS is not asked", async () => {
  let asked = 0;
  const { url } = await opened((_, response) => {
    asked++;
    respond(response, 200, {}, "x");
  });
  await warmUp([{ url, scheme: "https" }]);
  expect(asked).toBe(0);
});

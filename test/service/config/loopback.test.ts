/** The hosts that are this machine. Commands send a local admin token to such a host by default, so similar names must not count. */
import { expect, test } from "vitest";
import { isLoopback } from "../../../src/service/config/loopback.ts";

test.each(["localhost", "127.0.0.1", "127.255.3.4", "::1", "[::1]", "::ffff:127.0.0.1"])(
  "%s is this machine",
  (host) => {
    expect(isLoopback(host)).toBe(true);
  },
);

test.each([
  "",
  "localhost.example",
  "a.localhost",
  "127.0.0.1.example",
  "10.127.0.1",
  "127.1",
  "127.0.0.256",
  "1::1",
  "[::1].example",
  "[local]host",
  "0.0.0.0",
  "::",
])("%j is not", (host) => {
  expect(isLoopback(host)).toBe(false);
});

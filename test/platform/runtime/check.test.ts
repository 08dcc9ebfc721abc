/** On a Node that is too old, what needs a newer one says so. npm only warns, and the name of a missing function explains nothing. */
import { expect, test } from "vitest";
import { createFileStore, createTokenSession } from "../../../src/client/index.ts";
import { addHealth } from "../../../src/connect-grpc-health/index.ts";
import { createVerifier } from "../../../src/verifier/index.ts";

const session = () =>
  createTokenSession({ service: "https://a.example", clientId: "a", store: createFileStore("/nowhere") });
const health = () => Reflect.apply(addHealth, undefined, [{}, {}]);
const verifier = () =>
  createVerifier({ issuer: "https://a.example", audience: "a", jwksUrl: "http://127.0.0.1:1" }).close();

test.each([
  ["@session-service/verifier", verifier],
  ["@session-service/client", session],
  ["connect-grpc-health", health],
])("%s names the Node that it needs", (name, use) => {
  const { withResolvers } = Promise;
  Object.assign(Promise, { withResolvers: undefined });
  try {
    expect(use).toThrow(`${name} needs Node 22.13 or newer; this is Node ${process.versions.node}`);
  } finally {
    Object.assign(Promise, { withResolvers });
  }
});

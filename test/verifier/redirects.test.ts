/** An admin token, or a token that is introspected, does not follow a redirect: another origin receives nothing. */
import { expect, onTestFinished, test } from "vitest";
import { createVerifier } from "../../src/verifier/web/index.ts";
import { startRedirecting } from "../support/redirecting.ts";
import { AUDIENCE, ISSUER, startIssuer } from "../support/verifier/issuer.ts";

test.each([
  ["introspect", "IntrospectToken"],
  ["refuse", "WatchRevocations"],
] as const)("calls of the admin API over fetch, with the policy %s", async (policy, method) => {
  const { origin, received } = await startRedirecting();
  const issuer = await startIssuer();
  const verifier = createVerifier({
    ...{ issuer: ISSUER, audience: AUDIENCE, jwksUrl: issuer.jwksUrl, adminUrl: origin, adminToken: "admin-token" },
    ...{ policy, pollIntervalMs: 2000 },
  });
  onTestFinished(() => verifier.close());
  expect(await verifier.verify(issuer.issue().token)).toMatchObject({ ok: false, reason: "unavailable" });
  expect(received.first.join(" ")).toContain(method);
  expect(received.other).toEqual([]);
});

/** A sidecar that is configured for another service says so in its log. */
import { expect, onTestFinished, test } from "vitest";
import { request } from "../../support/raw-http.ts";
import { startService } from "../../support/service.ts";
import { bearer, logIn } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";
import { startForwardAuth } from "./command.ts";

test("a wrong issuer is logged with what was expected and received, without the token", async () => {
  const service = await startService({ ISSUER: "https://app.example.com" });
  onTestFinished(async () => void (await service.stop()));
  const forwardAuth = await startForwardAuth(service, "https://app.example.com/");
  onTestFinished(async () => void (await forwardAuth.stop()));
  const { accessToken } = await logIn(service);
  const { status } = await request(forwardAuth.url, { path: "/check", headers: bearer(accessToken) });
  expect(status).toBe(401);
  const logged = await until(() => {
    const line = forwardAuth
      .output()
      .split("\n")
      .find((each) => each.includes('"token_refused"'));
    if (line === undefined) throw new Error(`no report in ${forwardAuth.output()}`);
    return JSON.parse(line) as object;
  });
  expect(logged).toMatchObject({
    ...{ event: "token_refused", reason: "wrong_issuer", count: 1 },
    ...{ expected: { iss: "https://app.example.com/" }, received: { iss: "https://app.example.com" } },
  });
  for (const segment of accessToken.split(".")) expect(forwardAuth.output()).not.toContain(segment);
});

/** The receivers of docs/tasks/signals.md, exactly as printed there, with the running service. */
import { readFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { expect, test, vi } from "vitest";
import { SignalsAdminService, SubscriptionKind } from "../../../gen/auth/admin/v1/signals_admin_pb.ts";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { startService } from "../../support/service.ts";
import { bearer, logIn, message, openAdmin, openPublic } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";
import { requireReceiver } from "./world.ts";

const signals = SignalsAdminService.method;
const { WEBHOOK, BACKCHANNEL, SSF_PUSH } = SubscriptionKind;
const ISSUER = "https://auth.example";

type Receive = (body: string, headers: IncomingHttpHeaders) => unknown;
type Receiver = { readonly receive: Receive; readonly accepted: number; readonly failed?: (error: unknown) => number };

const PAGE = readFileSync("docs/tasks/signals.md", "utf8");
/** The codes of errors for which the receivers of tokens respond with 400, as the page names them. */
const REFUSED = [...PAGE.matchAll(/`(ERR_[A-Z]+_)…`/g)].map(([, prefix = ""]) => prefix);

/** Returns the status with which a receiver of tokens responds if it throws. */
function statusOf(error: unknown): number {
  const { code = "" } = error as { readonly code?: string };
  return REFUSED.length === 0 || REFUSED.some((prefix) => code.startsWith(prefix)) ? 400 : 503;
}

/** Loads the receiver in the code block below a heading. It imports packages from test/dependencies/receivers. */
async function receiverOf(heading: string): Promise<Receive> {
  const [, section = ""] = PAGE.split(`### ${heading}\n`);
  const [, code = ""] = /^```js\n(.*?)^```/ms.exec(section) ?? [];
  const resolved = code.replace(
    /from "([^"]+)"/,
    (_, name) => `from "${pathToFileURL(requireReceiver.resolve(name))}"`,
  );
  // A module is loaded once for each text, and reads its settings then.
  const text = `${resolved}\n// ${process.env.AUTH_URL}`;
  const module = await import(`data:text/javascript,${encodeURIComponent(text)}`);
  return Object.values<Receive>(module)[0] as Receive;
}

/** Serves several receivers on one port, each under its path and with the status that it returns for an accepted signal. */
async function serve(receivers: ReadonlyMap<string, Receiver>) {
  const server = createServer(async (request, response) => {
    const receiver = receivers.get(request.url ?? "");
    const body = await text(request);
    const status = await Promise.resolve(body)
      .then((given) => receiver?.receive(given, request.headers))
      .then(
        () => receiver?.accepted ?? 404,
        (error: unknown) => receiver?.failed?.(error) ?? 400,
      );
    response.writeHead(status).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop };
}

test("each receives the end of a session, and refuses what is not for it", async () => {
  const service = await startService({ SIGNALS: "on", SIGNALS_ALLOW_PRIVATE: "on", ISSUER });
  const ended: (readonly [string, string])[] = [];
  vi.stubGlobal("endLocalSession", (...end: [string, string]) => void ended.push(end));
  const env = { AUTH_URL: service.publicUrl, ISSUER, CLIENT_ID: "app", EVENTS_AUDIENCE: "https://app.example" };
  const authorization = "Bearer of-the-transmitter";
  for (const [name, value] of Object.entries({ ...env, EVENTS_AUTHORIZATION: authorization })) vi.stubEnv(name, value);
  const receivers = new Map<string, Receiver>();
  const server = await serve(receivers);
  const admin = openAdmin(service);
  const credential = bearer(service.adminToken);
  const subscribe = async (path: string, wanted: { kind: SubscriptionKind; audience?: string[]; secret?: string }) =>
    message(await admin.call(signals.createSubscription, { ...wanted, endpoint: server.url + path }, credential));

  const webhook = await subscribe("/webhook", { kind: WEBHOOK });
  vi.stubEnv("WEBHOOK_SECRET", webhook.generatedSecret);
  receivers.set("/webhook", { receive: await receiverOf("Webhooks"), accepted: 204 });
  const failed = statusOf;
  receivers.set("/logout", { receive: await receiverOf("Back-channel logout"), accepted: 200, failed });
  receivers.set("/events", { receive: await receiverOf("Security event tokens by push"), accepted: 202, failed });
  await subscribe("/logout", { kind: BACKCHANNEL, audience: ["app"] });
  await subscribe("/events", { kind: SSF_PUSH, audience: ["https://app.example"], secret: authorization });
  const others = [
    await subscribe("/webhook", { kind: WEBHOOK }),
    await subscribe("/logout", { kind: BACKCHANNEL, audience: ["another"] }),
    await subscribe("/events", { kind: SSF_PUSH, audience: ["https://app.example"], secret: "Bearer of-another" }),
    await subscribe("/events", { kind: SSF_PUSH, audience: ["another"], secret: authorization }),
  ];
  for (const { subscription } of others) {
    const { subscriptionId = "" } = subscription ?? {};
    const tested = message(await admin.call(signals.testSubscription, { subscriptionId }, credential));
    expect(tested).toMatchObject({ accepted: false, error: "refused" });
  }
  const { sid, accessToken } = await logIn(service);
  message(await openPublic(service).call(SessionService.method.logout, {}, bearer(accessToken)));
  await until(async () => expect(ended).toHaveLength(3));
  expect(ended).toEqual(Array.from({ length: 3 }, () => [sid, "logout"]));
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
  server.stop();
  await service.stop();
});

test.each([
  ["Back-channel logout", (token: string) => `logout_token=${token}`],
  ["Security event tokens by push", (token: string) => token],
])("%s: a signal is sent again if the key set cannot be read", async (heading, bodyOf) => {
  const keys = createServer((_, response) => response.writeHead(500).end());
  await new Promise<void>((resolve) => keys.listen(0, "127.0.0.1", resolve));
  vi.stubEnv("AUTH_URL", `http://127.0.0.1:${(keys.address() as AddressInfo).port}`);
  vi.stubEnv("EVENTS_AUTHORIZATION", "Bearer of-the-transmitter");
  const receive = await receiverOf(heading);
  const judge = (token: string) =>
    Promise.resolve()
      .then(() => receive(bodyOf(token), { authorization: "Bearer of-the-transmitter" }))
      .then(() => 200, statusOf);
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");
  const token = `${encode({ alg: "ES256", kid: "k" })}.${encode({})}.AAAA`;
  expect(await judge(token)).toBe(503);
  await new Promise((resolve) => keys.close(resolve));
  expect([await judge(token), await judge("no token")]).toEqual([503, 400]);
  vi.unstubAllEnvs();
});

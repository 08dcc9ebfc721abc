import { generateKeyPairSync, randomBytes, verify } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createLocalJWKSet, jwtVerify } from "jose";
import { describe, expect, test } from "vitest";
import { wallMs } from "../../../../src/service/session/time.ts";
import { backchannelRequest } from "../../../../src/service/signals/kinds/backchannel.ts";
import { errorOfStatus } from "../../../../src/service/signals/kinds/request.ts";
import { ssfPushRequest } from "../../../../src/service/signals/kinds/ssf.ts";
import { parseWebhookSecrets, webhookRequest } from "../../../../src/service/signals/kinds/webhook.ts";
import { createSender } from "../../../../src/service/signals/send/sender.ts";
import { ISSUER, NOW, SID } from "../../../support/tokens.ts";
import { requireReceiver, someContext, someSignal, startReceiver } from "../world.ts";

type Webhook = { verify(body: string, headers: object): unknown };
const { Webhook } = requireReceiver("standardwebhooks") as { readonly Webhook: new (secret: string) => Webhook };

const secretOf = (bytes = 32) => `whsec_${randomBytes(bytes).toString("base64")}`;

test("the package standardwebhooks accepts a webhook, by each of its secrets", async () => {
  const receiver = await startReceiver();
  const sender = createSender({ allowPrivate: true });
  const secrets = [secretOf(24), secretOf(64)];
  const signal = someSignal();
  const { context } = someContext(secrets.join(" "));
  expect(await sender.send(webhookRequest(signal, { endpoint: receiver.url }, context))).toEqual({
    ok: true,
    status: 200,
  });
  const [{ headers, body } = { headers: {}, body: "" }] = receiver.received;
  for (const secret of secrets) {
    expect(new Webhook(secret).verify(body, headers)).toEqual({
      type: "session.ended",
      timestamp: new Date(NOW).toISOString(),
      data: { session_id: SID, subject: "user-1", client_id: "app", reason: "logout" },
    });
  }
  expect(() => new Webhook(secretOf()).verify(body, headers)).toThrow("No matching signature found");
  expect(() => new Webhook(secrets[0] as string).verify(`${body} `, headers)).toThrow("No matching signature found");
  expect(headers["webhook-id"]).toBe(signal.id);
  sender.close();
  await receiver.close();
});

test.each([
  ["created", "session.created"],
  ["new_device", "session.new_device"],
] as const)("a webhook that reports %s is of the type %s, and has no reason", (reason, type) => {
  const secret = secretOf();
  const { body, headers } = webhookRequest(
    someSignal({ reason }),
    { endpoint: "https://a.example/" },
    { secret, now: wallMs(Date.now()) },
  );
  expect(new Webhook(secret).verify(body, headers)).toEqual({
    type,
    timestamp: new Date(NOW).toISOString(),
    data: { session_id: SID, subject: "user-1", client_id: "app" },
  });
});

test("a webhook of an update has the version of the session", () => {
  const secret = secretOf();
  const signal = someSignal({ reason: "updated", version: 7 });
  const { body, headers } = webhookRequest(
    signal,
    { endpoint: "https://a.example/" },
    { secret, now: wallMs(Date.now()) },
  );
  expect(new Webhook(secret).verify(body, headers)).toMatchObject({
    type: "session.updated",
    data: { session_id: SID, subject: "user-1", client_id: "app", version: 7 },
  });
  // Other webhooks have none, also where their signal has one.
  const other = webhookRequest(
    { ...signal, reason: "logout" },
    { endpoint: "https://a.example/" },
    { secret, now: wallMs(0) },
  );
  expect(JSON.parse(other.body).data).not.toHaveProperty("version");
});

test("an old webhook is refused by its time, and a repeated one has the same id", () => {
  const secret = secretOf();
  const [first, again] = [0, 3_600_000].map((ms) =>
    webhookRequest(someSignal(), { endpoint: "https://a.example/" }, { secret, now: wallMs(NOW + ms) }),
  );
  expect(first?.headers["webhook-id"]).toBe(again?.headers["webhook-id"]);
  expect(first?.headers["webhook-signature"]).not.toBe(again?.headers["webhook-signature"]);
  expect(() => new Webhook(secret).verify(first?.body ?? "", first?.headers ?? {})).toThrow(
    "Message timestamp too old",
  );
});

test("an Ed25519 key signs beside a secret of HMAC, and the package takes what it knows", () => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const seed = Buffer.from(privateKey.export({ format: "jwk" }).d as string, "base64url");
  const secret = secretOf();
  const { context } = someContext(`whsk_${seed.toString("base64")} ${secret}`);
  const { headers, body } = webhookRequest(someSignal(), { endpoint: "https://a.example/" }, context);
  const signatures = (headers["webhook-signature"] as string).split(" ");
  expect(signatures.map((text) => text.split(",")[0])).toEqual(["v1a", "v1"]);
  const signed = Buffer.from(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`);
  const signature = Buffer.from(signatures[0]?.split(",")[1] as string, "base64");
  expect(verify(null, signed, publicKey, signature)).toBe(true);
  expect(new Webhook(secret).verify(body, headers)).toBeDefined();
});

test.each([
  "",
  "secret",
  "whsec_",
  "whsec_c2hvcnQ=",
  "whsk_c2hvcnQ=",
  `whsec_${"A".repeat(32)}  whsec_${"A".repeat(32)}`,
  "whsec_*",
  // Bytes that are no base64, and as many as no secret has.
  `whsec_${"A".repeat(32)}!`,
  `whsec_${"A".repeat(88)}`,
  `whsk_${"A".repeat(43)}*`,
  `whsk_${"A".repeat(64)}`,
  "A".repeat(32),
  `abcd_${"A".repeat(43)}=`,
  Array(5)
    .fill(`whsec_${"A".repeat(32)}`)
    .join(" "),
])("a malformed secret is refused: %s", (secret) => {
  expect(() => parseWebhookSecrets(secret)).toThrow(RangeError);
});

test("jose verifies a logout token, which has what the specification asks for and no nonce", async () => {
  const { jwks, context } = someContext();
  const { body, headers } = await backchannelRequest(
    someSignal(),
    { endpoint: "https://a.example/", audience: ["app"] },
    context,
  );
  expect(headers["content-type"]).toBe("application/x-www-form-urlencoded");
  const token = new URLSearchParams(body).get("logout_token") as string;
  const { payload } = await jwtVerify(token, createLocalJWKSet(jwks), {
    issuer: ISSUER,
    audience: "app",
    typ: "logout+jwt",
  });
  const { iat = 0, exp, ...claims } = payload;
  expect(exp).toBe(iat + 120);
  expect(claims).toEqual({
    ...{ iss: ISSUER, aud: "app", sub: "user-1", sid: SID, jti: someSignal().id },
    events: { "http://schemas.openid.net/event/backchannel-logout": {} },
  });
});

test("jose verifies a security event token, which names a session of a user and cannot be an access token", async () => {
  const { jwks, context } = someContext("Bearer of-the-receiver");
  const target = { endpoint: "https://a.example/", audience: ["https://a.example", "https://b.example"] };
  const { body, headers } = await ssfPushRequest(someSignal(), target, context);
  const accept = { "content-type": "application/secevent+jwt", accept: "application/json" };
  expect(headers).toEqual({ ...accept, authorization: "Bearer of-the-receiver" });
  const options = { issuer: ISSUER, audience: "https://b.example", typ: "secevent+jwt" };
  const { payload } = await jwtVerify(body, createLocalJWKSet(jwks), options);
  expect([payload.sub, payload.exp, payload.jti]).toEqual([undefined, undefined, someSignal().id]);
  expect(payload.sub_id).toEqual({
    format: "complex",
    session: { format: "opaque", id: SID },
    user: { format: "iss_sub", iss: ISSUER, sub: "user-1" },
  });
  const event = { event_timestamp: Math.floor(NOW / 1000), initiating_entity: "user", reason_admin: { en: "logout" } };
  expect(payload.events).toEqual({ "https://schemas.openid.net/secevent/caep/event-type/session-revoked": event });
});

describe("the claims of a token", () => {
  const claimsOf = (token: string) =>
    JSON.parse(Buffer.from(token.split(".")[1] as string, "base64url").toString()) as Readonly<Record<string, unknown>>;
  const eventOf = async (changes: Parameters<typeof someSignal>[0], secret = "") => {
    const target = { endpoint: "https://a.example/", audience: ["app"] };
    const request = await ssfPushRequest(someSignal(changes), target, someContext(secret).context);
    return { request, ...claimsOf(request.body) } as { readonly request: typeof request; readonly events: object };
  };
  const event_timestamp = Math.floor(NOW / 1000);
  const CAEP = "https://schemas.openid.net/secevent/caep/event-type/";

  test("of an update name the version of the session alone (CAEP section 3.2)", async () => {
    const updated = { event_timestamp, initiating_entity: "admin", claims: { sv: 7 } };
    expect((await eventOf({ reason: "updated", version: 7 })).events).toEqual({
      [`${CAEP}token-claims-change`]: updated,
    });
  });

  test("of a login name nobody who caused it (CAEP section 3.6)", async () => {
    expect((await eventOf({ reason: "created" })).events).toEqual({
      [`${CAEP}session-established`]: { event_timestamp },
    });
  });

  test("have the actor who used the session, in every event and in a logout token", async () => {
    const act = { sub: "support" };
    for (const reason of ["updated", "created", "logout"] as const) {
      expect(Object.values((await eventOf({ reason, actor: "support" })).events)).toMatchObject([{ act }]);
      expect(Object.values((await eventOf({ reason })).events)[0]).not.toHaveProperty("act");
    }
    const target = { endpoint: "https://a.example/", audience: ["app", "other"] };
    const { body } = await backchannelRequest(someSignal({ actor: "support" }), target, someContext().context);
    const logout = claimsOf(new URLSearchParams(body).get("logout_token") ?? "");
    expect([logout.act, logout.aud]).toEqual([act, ["app", "other"]]);
  });

  test("are sent with no authorization where the receiver wants none", async () => {
    expect((await eventOf({})).request.headers).not.toHaveProperty("authorization");
  });
});

test("without a subject the session alone is named", async () => {
  const { context } = someContext();
  const { subject: _, ...signal } = someSignal();
  const claims = (token: string) => JSON.parse(Buffer.from(token.split(".")[1] as string, "base64url").toString());
  const target = { endpoint: "https://a.example/", audience: ["app"] };
  expect(claims((await ssfPushRequest(signal, target, context)).body).sub_id).toEqual({ format: "opaque", id: SID });
  const logout = new URLSearchParams((await backchannelRequest(signal, target, context)).body).get(
    "logout_token",
  ) as string;
  expect(claims(logout)).not.toHaveProperty("sub");
});

test("a status means what the specification of the kind says", () => {
  const statuses = [200, 202, 204, 300, 302, 399, 400, 404, 410, 499, 408, 425, 429, 500, 503, 599, 600, 199];
  const errors = (kind: "webhook" | "backchannel" | "ssf_push") =>
    statuses.map((status) => errorOfStatus(kind, status));
  const failures = [
    ...["redirected", "redirected", "redirected"],
    ...["refused", "refused", "refused", "refused"],
    ...Array(6).fill("server_error"),
    ...["invalid_response", "invalid_response"],
  ];
  expect(errors("webhook")).toEqual([undefined, undefined, undefined, ...failures]);
  expect(errors("backchannel")).toEqual([undefined, "invalid_response", undefined, ...failures]);
  expect(errors("ssf_push")).toEqual(["invalid_response", undefined, "invalid_response", ...failures]);
});

test("four secrets are accepted, of 24 to 64 bytes, and an Ed25519 key with its public key", () => {
  const { privateKey } = generateKeyPairSync("ed25519");
  const { d, x } = privateKey.export({ format: "jwk" }) as { readonly d: string; readonly x: string };
  const both = Buffer.concat([Buffer.from(d, "base64url"), Buffer.from(x, "base64url")]).toString("base64");
  const secrets = [
    secretOf(24),
    secretOf(64),
    `whsk_${both}`,
    `whsk_${Buffer.from(d, "base64url").toString("base64")}`,
  ];
  const [, , third, fourth] = parseWebhookSecrets(secrets.join(" ")).map((signWith) => signWith("text"));
  expect(third).toMatch(/^v1a,/);
  expect(third).toBe(fourth);
});

type Handler = (request: object, response: object) => void;
type OpenidConnect = { readonly auth: (options: object) => Handler };
type Express = () => Handler & { use(handler: Handler): void };

test("express-openid-connect logs a session out by what is sent, and its 400 is an error", async () => {
  const { jwks, context } = someContext();
  const provider = createServer((request, response) => {
    const { port } = provider.address() as AddressInfo;
    const origin = `http://127.0.0.1:${port}`;
    const endpoints = { authorization_endpoint: `${origin}/authorize`, token_endpoint: `${origin}/token` };
    const metadata = { issuer: origin, jwks_uri: `${origin}/jwks`, ...endpoints, response_types_supported: ["code"] };
    const algs = { id_token_signing_alg_values_supported: ["ES256"], subject_types_supported: ["public"] };
    response.setHeader("content-type", "application/json");
    response.end(
      JSON.stringify(request.url === "/jwks" ? jwks : { ...metadata, ...algs, response_modes_supported: ["query"] }),
    );
  });
  await new Promise<void>((resolve) => provider.listen(0, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;

  const ended: string[] = [];
  const store = {
    set(id: string, _: object, done: (error?: Error) => void) {
      ended.push(id);
      done();
    },
    get: (_: string, done: (error?: Error) => void) => done(),
    destroy: (_: string, done: (error?: Error) => void) => done(),
  };
  const express = requireReceiver("express") as Express;
  const application = express();
  const { auth } = requireReceiver("express-openid-connect") as OpenidConnect;
  const client = { issuerBaseURL: issuer, baseURL: "http://localhost:3000", clientID: "app", secret: "s".repeat(32) };
  const code = { clientSecret: "c", authorizationParams: { response_type: "code" }, idTokenSigningAlg: "ES256" };
  application.use(auth({ ...client, ...code, authRequired: false, backchannelLogout: { store, onLogin: false } }));
  const server = createServer(application);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));

  const sender = createSender({ allowPrivate: true });
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/backchannel-logout`;
  const send = async (audience: string) =>
    sender.send(await backchannelRequest(someSignal(), { endpoint, audience: [audience] }, { ...context, issuer }));
  expect(await send("app")).toEqual({ ok: true, status: 204 });
  expect(ended.sort()).toEqual([`${issuer}|${SID}`, `${issuer}|user-1`].sort());
  expect(await send("another")).toEqual({ ok: true, status: 400 });
  sender.close();
  for (const one of [server, provider]) {
    one.closeAllConnections();
    one.close();
  }
});

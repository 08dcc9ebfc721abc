/** The commands about subscriptions of signals, against a running service. */
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Service, scratch, startService } from "../../support/service.ts";
import { bearer, logIn } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";
import { requireReceiver, startReceiver } from "../signals/world.ts";
import { command, commandHere } from "./command.ts";

type Webhook = { verify(body: string, headers: object): unknown };
const { Webhook } = requireReceiver("standardwebhooks") as { readonly Webhook: new (secret: string) => Webhook };

let service: Service;
let env: Record<string, string>;
const signals = (...args: string[]) => commandHere(["signals", ...args], { env });

beforeAll(async () => {
  service = await startService({ SIGNALS: "on", SIGNALS_ALLOW_PRIVATE: "on" });
  env = { ADMIN_URL: service.adminUrl, ADMIN_TOKEN: service.adminToken };
});
afterAll(async () => {
  await service.stop();
});

async function created(endpoint: string, ...more: string[]) {
  const { code, out, err } = await signals("create", endpoint, "--json", ...more);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  type Created = { readonly subscription: Record<string, unknown>; readonly generatedSecret?: string };
  const { subscription, generatedSecret = "" } = JSON.parse(out) as Created;
  return { subscription, id: String(subscription.subscriptionId), secret: generatedSecret };
}

test("the secret of a new webhook is printed once, and verifies a test signal", async () => {
  const receiver = await startReceiver();
  const { code, out, err } = await signals("create", receiver.url);
  expect(code).toBe(0);
  expect(err).toContain("not shown again");
  const [, id = ""] = /^subscription +(\S+)\nkind +webhook\nendpoint +http/.exec(out) ?? [];
  const [, secret = ""] = /\nsecret +(whsec_\S+)\n$/.exec(out) ?? [];
  expect(await signals("test", id)).toEqual({ code: 0, out: "the receiver has accepted the signal\n", err: "" });
  expect(
    new Webhook(secret).verify(receiver.received[0]?.body ?? "", receiver.received[0]?.headers ?? {}),
  ).toBeTruthy();
  for (const args of [["list"], ["list", "--json"], ["show", id], ["show", id, "--json"], ["pause", id]]) {
    const shown = await signals(...args);
    expect([shown.code, shown.err]).toEqual([0, ""]);
    expect(shown.out).toContain(id);
    expect(shown.out).not.toContain(secret.slice(6));
  }
  expect((await signals("delete", id)).code).toBe(0);
  await receiver.close();
});

test("what a subscription is about and who it is for are given by options", async () => {
  const options = ["--kind", "backchannel", "--audience", "app", "--subject", "alice", "--client-id", "shop"];
  const signing = ["--signing-alg", "ES256"];
  const { subscription, secret } = await created(
    "http://127.0.0.1:1/",
    ...options,
    ...signing,
    "--reason",
    "logout",
    "expired",
  );
  const filter = { subject: "alice", clientId: "shop", reasons: ["logout", "expired"] };
  expect(subscription).toMatchObject({
    kind: "SUBSCRIPTION_KIND_BACKCHANNEL",
    audience: ["app"],
    filter,
    signingAlg: "ES256",
  });
  expect(secret).toBe("");
});

test("a secret comes from a file or standard input, and is not printed", async () => {
  const receiver = await startReceiver();
  const secret = `whsec_${randomBytes(32).toString("base64")}`;
  const path = join(scratch(), "secret");
  writeFileSync(path, `${secret}\n`);
  const fromFile = await created(receiver.url, "--secret-file", path);
  expect(fromFile.secret).toBe("");
  const args = ["signals", "create", receiver.url, "--secret-file", "-", "--json"];
  const { out } = await command(args, { env, input: secret });
  expect(out).not.toContain(secret);
  for (const id of [fromFile.id, String(JSON.parse(out).subscription.subscriptionId)]) await signals("test", id);
  expect(receiver.received).toHaveLength(2);
  for (const { body, headers } of receiver.received) expect(new Webhook(secret).verify(body, headers)).toBeTruthy();
  const twice = await signals("create", receiver.url, "--secret-file", "-", "--token-file", "-");
  expect([twice.code, twice.err]).toEqual([2, expect.stringContaining("standard input")]);
  await receiver.close();
});

test("a paused subscription says why, until it is resumed", async () => {
  const { id } = await created("http://127.0.0.1:1/");
  expect((await signals("pause", id)).out).toMatch(/\nstate +paused: operator\n/);
  expect((await signals("list")).out).toMatch(new RegExp(`^${id} +webhook +paused: operator +0 +0 +0 +http`, "m"));
  expect((await signals("resume", id)).out).toMatch(/\nstate +active\n/);
});

test("a receiver that does not accept a test is a failure with its reason", async () => {
  const receiver = await startReceiver(() => 500);
  const { id } = await created(receiver.url);
  const { code, out, err } = await signals("test", id);
  expect([code, out, err]).toEqual([1, "", "the receiver has not accepted the signal: server_error\n"]);
  const json = await signals("test", id, "--json");
  expect([json.code, JSON.parse(json.out)]).toEqual([1, { error: "server_error" }]);
  await receiver.close();
});

test("a receiver that fails twice in a row is failing, in the list and in the metrics", async () => {
  const receiver = await startReceiver(() => 500);
  const { id } = await created(receiver.url);
  const session = await logIn(service);
  const logout = { method: "DELETE", headers: bearer(session.accessToken) };
  expect((await fetch(`${service.publicUrl}/v1/auth/logout`, logout)).status).toBe(200);
  await until(async () =>
    expect((await signals("list")).out).toMatch(new RegExp(`^${id} +webhook +failing +0 +0 `, "m")),
  );
  await until(async () => {
    const metrics = await (await fetch(`${service.adminUrl}/metrics`)).text();
    // Subscriptions of other tests fail, too.
    expect(metrics).toMatch(/^session_signal_subscriptions\{kind="webhook",state="failing"\} [1-9]/m);
    expect(metrics).toMatch(/^session_signals_waiting\{kind="webhook",state="failing"\} [1-9]/m);
  });
  expect((await signals("delete", id)).code).toBe(0);
  await receiver.close();
});

test.each([
  [["show", "none"], 1, "there is no such subscription"],
  [["test", "none"], 1, "there is no such subscription"],
  [["pause", "none"], 1, "there is no such subscription"],
  [["create", "ftp://a.example/"], 2, "endpoint"],
  [["create", "https://a.example/", "--kind", "backchannel"], 2, "audience"],
  [["create", "https://a.example/", "--kind", "pigeon"], 2, "Allowed choices are webhook, backchannel, ssf_push"],
])("what is refused is explained: %j", async (args, expected, text) => {
  const { code, out, err } = await signals(...args);
  expect([code, out, err]).toEqual([expected, "", expect.stringContaining(text)]);
});

test("a service without SIGNALS=on is named as the cause", async () => {
  const without = await startService();
  const elsewhere = { ADMIN_URL: without.adminUrl, ADMIN_TOKEN: without.adminToken };
  for (const args of [["list"], ["show", "some"], ["create", "https://a.example/"]]) {
    const { code, out, err } = await commandHere(["signals", ...args], { env: elsewhere });
    expect([code, out, err]).toEqual([1, "", expect.stringContaining("SIGNALS")]);
  }
  await without.stop();
});

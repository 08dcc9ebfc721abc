/** What a poll reports of events that an earlier one brought, and for how long it is reported. */
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { parseProviders } from "../../../src/service/config/providers.ts";
import { pollEvents } from "../../../src/service/sign-in/security-polls.ts";
import { scratch } from "../../support/service.ts";
import { until } from "../../support/until.ts";

test("events are acknowledged or refused until the transmitter has heard it; one without a verdict is reported in neither way", async () => {
  const polls: Record<string, unknown>[] = [];
  const responses = [
    { status: 200, body: { sets: { good: "good", bad: "bad", later: "later", odd: 1 }, moreAvailable: true } },
    { status: 500, body: {} },
    { status: 200, body: { sets: {} } },
  ];
  const server = createServer(async (request, response) => {
    const text = await request.toArray();
    polls.push({ ...JSON.parse(Buffer.concat(text).toString()), token: request.headers.authorization });
    const { status, body } = responses.shift() ?? { status: 200, body: { sets: {} } };
    response.writeHead(status).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const tokenFile = join(scratch(), "token");
  writeFileSync(tokenFile, "a token\n");
  const security_events = {
    ...{ audience: "us", poll_token_file: tokenFile },
    poll_url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/poll`,
  };
  const provider = { name: "staff", issuer: "https://login.example.com", client_id: "app", security_events };
  const providers = parseProviders(JSON.stringify({ providers: [provider] }));
  const stopping = new AbortController();
  pollEvents({
    providers: () => providers,
    async accept(token) {
      if (token === "bad") return { ok: false, reason: "invalid", err: "invalid_audience" };
      if (token === "later") throw new Error("the store does not respond");
      return { ok: true };
    },
    log: { info() {}, warn() {} },
    stopping: stopping.signal,
  });
  await until(() => expect(polls.length).toBeGreaterThanOrEqual(4));
  stopping.abort();
  server.close();
  server.closeAllConnections();
  const fixed = { maxEvents: 10, token: "Bearer a token" };
  const verdicts = { ack: ["good"], setErrs: { bad: { err: "invalid_audience", description: "refused" } } };
  const none = { ack: [], setErrs: {} };
  expect(polls.slice(0, 4)).toEqual([
    { ...fixed, ...none, returnImmediately: false },
    { ...fixed, ...verdicts, returnImmediately: true },
    { ...fixed, ...verdicts, returnImmediately: true },
    { ...fixed, ...none, returnImmediately: false },
  ]);
});

/** Starts a transmitter, and polls it until the returned function is called. @param sets returns the events for a poll, by its number */
async function startPolled(sets: (count: number) => string) {
  const polls: Record<string, unknown>[] = [];
  const server = createServer(async (request, response) => {
    polls.push(JSON.parse(Buffer.concat(await request.toArray()).toString()));
    response.end(`{"sets":${sets(polls.length)}}`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const tokenFile = join(scratch(), "token");
  writeFileSync(tokenFile, "a token\n");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/poll`;
  const security_events = { audience: "us", poll_token_file: tokenFile, poll_url: url };
  const provider = { name: "staff", issuer: "https://login.example.com", client_id: "app", security_events };
  const providers = parseProviders(JSON.stringify({ providers: [provider] }));
  const stopping = new AbortController();
  pollEvents({
    providers: () => providers,
    accept: async (token) =>
      token === "bad" ? { ok: false, reason: "invalid", err: "invalid_request" } : { ok: true },
    log: { info() {}, warn() {} },
    stopping: stopping.signal,
  });
  const stop = () => {
    stopping.abort();
    server.close();
    server.closeAllConnections();
  };
  onTestFinished(stop);
  return { polls, stop };
}

test("a transmitter that repeats what it was acknowledged is polled after a pause, and one that has more at once", async () => {
  const repeating = await startPolled(() => '{"again":"good","refused":"bad"}');
  const going = await startPolled((count) => `{"${count}":"good"}`);
  await until(() => expect(going.polls.length).toBeGreaterThan(200));
  await until(() => expect(repeating.polls.length).toBeGreaterThan(1)); // The first brings news.
  const count = repeating.polls.length;
  repeating.stop();
  going.stop();
  expect(count).toBeLessThan(100);
});

test("an event with an odd id is refused like any other", async () => {
  const { polls, stop } = await startPolled((count) => (count === 1 ? '{"__proto__":"bad"}' : "{}"));
  await until(() => expect(polls.length).toBeGreaterThan(1));
  stop();
  expect(Object.entries(polls[1]?.setErrs ?? {})).toEqual([
    ["__proto__", { err: "invalid_request", description: "refused" }],
  ]);
});

test("a token file that holds no token is reported without a word of it", async () => {
  const tokenFile = join(scratch(), "token");
  writeFileSync(tokenFile, "a-secret\nb");
  const security_events = { audience: "us", poll_url: "http://127.0.0.1:1/poll", poll_token_file: tokenFile };
  const provider = { name: "staff", issuer: "https://login.example.com", client_id: "app", security_events };
  const providers = parseProviders(JSON.stringify({ providers: [provider] }));
  const stopping = new AbortController();
  const reason = await new Promise((resolve) => {
    pollEvents({
      providers: () => providers,
      accept: async () => ({ ok: true }),
      log: { info() {}, warn: (fields) => resolve(fields) },
      stopping: stopping.signal,
    });
  });
  stopping.abort();
  expect(reason).toMatchObject({ event: "security_poll_failed", reason: "poll_token_file holds no token" });
});

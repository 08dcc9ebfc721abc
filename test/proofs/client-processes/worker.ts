/**
 * One process of a client, which shares a file of tokens with others, and runs until it is killed. It reports each refresh as a line: the
 * outcome, and how long it took from reading the file to writing it, in ms.
 *
 * With a key it presents the token of the file or any earlier one with a proof, and writes what it gets: no client could care less about
 * other processes. Without a key it is `@session-service/client`.
 */
import { createPrivateKey, createPublicKey } from "node:crypto";
import { appendFileSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { createFileStore, createTokenSession, SessionEnded, SessionUnavailable } from "../../../src/client/index.ts";
import { type ClientKey, dpop, keyOf } from "../../support/dpop.ts";
import { type Orders, TOKEN_PATH } from "./orders.ts";

const orders = JSON.parse(process.env.ORDERS ?? "") as Orders;
const { service, publicUrl, file, tokenLifeMs, requestTimeoutMs, key } = orders;
const store = createFileStore(file);
const report = (outcome: string, startedAt: number) =>
  process.stdout.write(`${outcome} ${Math.round(performance.now() - startedAt)}\n`);

/** Presents the token of the file, or an earlier one. */
async function refreshWithKey(clientKey: ClientKey): Promise<string> {
  const old = readFileSync(orders.history, "utf8").trim().split("\n");
  const stored = Math.random() < 0.5 ? (await store.load())?.refreshToken : undefined;
  const refreshToken = stored ?? old[Math.floor(Math.random() * old.length)] ?? "";
  let nonce: string | null = null;
  for (let attempt = 0; attempt < 3; attempt++) {
    const claims = nonce === null ? {} : { nonce };
    const response = await fetch(service + TOKEN_PATH, {
      method: "POST",
      headers: { dpop: dpop(clientKey, publicUrl + TOKEN_PATH, { claims }) },
      body: new URLSearchParams({ grant_type: "refresh_token", refresh_token: refreshToken, client_id: "cli" }),
      signal: AbortSignal.timeout(requestTimeoutMs),
    });
    const body = (await response.json()) as { error?: string; refresh_token?: string };
    if (response.ok && body.refresh_token !== undefined) {
      await store.save({ refreshToken: body.refresh_token });
      appendFileSync(orders.history, `${body.refresh_token}\n`);
      return "served";
    }
    if (body.error === "invalid_grant") return "ended";
    if (body.error !== "use_dpop_nonce") return "unavailable";
    nonce = response.headers.get("dpop-nonce");
  }
  return "unavailable";
}

const session = createTokenSession({ service, clientId: "cli", requestTimeoutMs, store });

async function refreshWithout(): Promise<string> {
  const before = (await store.load())?.access?.token;
  return (await session.accessToken()) === before ? "valid" : "served";
}

function outcomeOf(error: unknown): string {
  if (error instanceof SessionEnded) return "ended";
  // A request of its own that fails or times out is a lost one.
  if (key === undefined && !(error instanceof SessionUnavailable)) throw error;
  return "unavailable";
}

const privateKey = key === undefined ? undefined : createPrivateKey({ key, format: "jwk" });
const clientKey = privateKey && keyOf("ES256", privateKey, createPublicKey(privateKey));
for (;;) {
  await pause(Math.random() * tokenLifeMs);
  const startedAt = performance.now();
  report(await (clientKey ? refreshWithKey(clientKey) : refreshWithout()).catch(outcomeOf), startedAt);
}

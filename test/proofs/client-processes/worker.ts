/**
 * One process of a client, which shares a file of tokens with others, and runs until it is killed. It reports each refresh as a line: the
 * outcome, and how long it took from reading the file to writing the file, in ms.
 *
 * It uses `@session-service/client`. With `presents: "any generation"` it is a worst case instead: with a proof, it presents any token
 * that was ever in the file, and overwrites what other processes have written.
 */
import { appendFileSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { createEndpoints } from "../../../src/client/endpoints.ts";
import { createFileStore, createTokenSession, SessionEnded, SessionUnavailable } from "../../../src/client/index.ts";
import { importProofKey } from "../../../src/client/proof-key.ts";
import { createProofs } from "../../../src/client/proofs.ts";
import type { Orders } from "./orders.ts";

const orders = JSON.parse(process.env.ORDERS ?? "") as Orders;
const { service, file, history, presents, tokenLifeMs, requestTimeoutMs } = orders;
const clientId = "cli";
const store = createFileStore(file);
const session = createTokenSession({ service, clientId, requestTimeoutMs, store, dpop: true });
const endpoints = createEndpoints({ service, clientId, requestTimeoutMs, fetch, proofs: createProofs(Date) });

async function refreshAnyGeneration(): Promise<string> {
  const { key } = (await store.load()) ?? {};
  if (key === undefined) throw new Error("there is no key in the file");
  const old = readFileSync(history, "utf8").trim().split("\n");
  const refreshToken = old[Math.floor(Math.random() * old.length)] ?? "";
  const granted = await endpoints.refresh(refreshToken, await importProofKey(key));
  if (granted === undefined) return "ended";
  await store.save({ refreshToken: granted.refreshToken, key });
  return "served";
}

async function refresh(): Promise<string> {
  const before = (await store.load())?.access?.token;
  return (await session.accessToken()) === before ? "valid" : "served";
}

function outcomeOf(error: unknown): string {
  if (error instanceof SessionEnded) return "ended";
  if (error instanceof SessionUnavailable) return "unavailable";
  throw error;
}

for (;;) {
  await pause(Math.random() * tokenLifeMs);
  const startedAt = performance.now();
  const outcome = await (presents === "any generation" ? refreshAnyGeneration() : refresh()).catch(outcomeOf);
  process.stdout.write(`${outcome} ${Math.round(performance.now() - startedAt)}\n`);
  appendFileSync(history, `${(await store.load())?.refreshToken}\n`);
}

/**
 * A process that runs each step of an embedded store once. It writes a line before the step and one after its acknowledgement, so that a
 * trace of its system calls shows what reached the disk in between. Usage: node durable-steps.ts <file>
 */
import { writeSync } from "node:fs";
import type { TokenFields } from "../../../../src/service/session/rotation/rotation.ts";
import { storeMs, wallMs } from "../../../../src/service/session/time.ts";
import { createEmbeddedStore } from "../../../../src/service/store/embedded/store.ts";
import { MARKER_LIFE, newSession, nonce, outcomeOf, subject } from "../../../support/store/sessions.ts";

const [path = ""] = process.argv.slice(2);
// The store has no reuse interval, so a token counts as reused as soon as its successor has been used.
let now = Date.now();
const clock = () => wallMs(now);
const store = createEmbeddedStore({ path, clock, steady: clock, reuseIntervalMs: 0, markerLifeMs: MARKER_LIFE });

async function step<T>(name: string, run: () => Promise<T>): Promise<T> {
  now += 1000;
  writeSync(1, `<${name}>\n`);
  const result = await run();
  writeSync(1, `</${name}>\n`);
  return result;
}

const user = subject();
const [first, second, third] = [newSession(user), newSession(user), newSession(user)];
const token = (nonceOf: string, generation: number): TokenFields => ({
  generation,
  nonce: nonceOf,
  issuedAt: storeMs(0),
});
const [n1, n2, n3] = [nonce(), nonce(), nonce()];

await step("create", () => store.create(first, n1, { cap: 10 }));
await store.create(second, nonce(), { cap: 10 });
await store.create(third, nonce(), { cap: 10 });
await step("rotate", () => store.rotate(first.sid, token(n1, 1), n2));
now += 1000;
await store.rotate(first.sid, token(n2, 2), n3);
const reused = await step("reuse", () => store.rotate(first.sid, token(n1, 1), nonce()));
if (outcomeOf(reused) !== "reuse") throw new Error(outcomeOf(reused));
const key = { algorithm: "ES256", bytes: new Uint8Array(64), thumbprint: new Uint8Array(32) } as const;
const authentication = { time: wallMs(now), methods: ["otp"], contextClass: "" };
await step("elevate", () => store.elevate(second.sid, authentication));
await step("update", () => store.update(second.sid, { claims: '{"role":"reader"}', outdatesTokens: true }));
await step("registerKey", () => store.registerKey(second.sid, token(nonce(), 1), key));
await step("unbind", () => store.unbind(second.sid));
await step("endOwned", () => store.endOwned(second.sid, third.sid, "revoked_by_owner"));
await step("end", () => store.end(second.sid, "logout"));
await store.create(newSession(user), nonce(), { cap: 10 });
await step("endAll", () => store.endAll(user, "revoked_subject"));
await step("forget", () => store.forget(user));
await store.create(newSession(user), nonce(), { cap: 10 });
await step("evict", () => store.create(newSession(user), nonce(), { cap: 1 }));
// They are more than one transaction ends.
for (let count = 0; count < 60; count++) await store.create(newSession(user), nonce(), { cap: 100 });
await step("endMany", () => store.endAll(user, "revoked_subject"));
await step("note", () => store.note({ issuer: "https://login.example", usedToken: nonce() }, 60_000));
const [own, acting] = [newSession(user), newSession(subject())];
await store.create(own, nonce(), { cap: 10 });
await store.create(acting, nonce(), { cap: 10 });
await step("attach", () => store.attach(acting.sid, own.sid, 60_000));
await store.end(own.sid, "logout");
await step("endAttached", () => store.endAttached());
await step("revokeAll", () => store.revokeAll(undefined));
await store.close();

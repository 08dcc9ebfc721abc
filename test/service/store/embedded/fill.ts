/** Fills an embedded store until it fails, and prints what was acknowledged. Usage: node fill.ts <file> */

import { systemClock } from "../../../../src/service/session/time.ts";
import { createEmbeddedStore } from "../../../../src/service/store/embedded/store.ts";
import { MARKER_LIFE, newSession, nonce, REUSE_INTERVAL, subject } from "../../../support/store/sessions.ts";

const [path = ""] = process.argv.slice(2);
const store = createEmbeddedStore({
  path,
  clock: systemClock,
  reuseIntervalMs: REUSE_INTERVAL,
  markerLifeMs: MARKER_LIFE,
});
const created: string[] = [];
const ended: string[] = [];
let failure = "";
while (failure === "") {
  const session = newSession(subject(), { claims: JSON.stringify({ filler: "x".repeat(3_000) }) });
  try {
    await store.create(session, nonce(), { cap: 10 });
    created.push(session.sid);
    if (created.length % 3 === 0) {
      await store.end(session.sid, "logout");
      ended.push(session.sid);
    }
  } catch (error) {
    failure = error instanceof Error ? error.name : String(error);
  }
}
// A small write may still fit after a large one has failed, so small writes are repeated until one fails as well.
let ready = "";
for (let at = 0; at < 100 && ready === ""; at++) {
  ready = await store.ping().then(
    () => "",
    (error: Error) => error.name,
  );
}
console.log(JSON.stringify({ created, ended, failure, ready }));

/**
 * A process that writes to an embedded store until it is killed. It prints each acknowledged write as a line of JSON. If another process
 * locks the file for too long, it tries again, as a caller would. Usage: node writer.ts <file>
 */
import { writeSync } from "node:fs";
import { storeMs, systemClock } from "../../../../src/service/session/time.ts";
import { createEmbeddedStore } from "../../../../src/service/store/embedded/store.ts";
import { MARKER_LIFE, newSession, nonce, REUSE_INTERVAL, subject } from "../../../support/store/sessions.ts";
import { until } from "../../../support/until.ts";

const [path = ""] = process.argv.slice(2);
const store = createEmbeddedStore({
  path,
  clock: systemClock,
  reuseIntervalMs: REUSE_INTERVAL,
  markerLifeMs: MARKER_LIFE,
});
/**
 * Prints an acknowledged write. The next write begins only after that. So when this process is killed, at most one acknowledged write has
 * not been printed: the last one.
 */
const acknowledge = (fact: object) => writeSync(1, `${JSON.stringify(fact)}\n`);

for (let round = 0; ; round++) {
  const session = newSession(subject());
  const first = nonce();
  await until(() => store.create(session, first, { cap: 10 }));
  acknowledge({ created: session.sid });
  const result = await until(() =>
    store.rotate(session.sid, { generation: 1, nonce: first, issuedAt: storeMs(0) }, nonce()),
  );
  if ("child" in result) acknowledge({ refreshed: session.sid, child: result.child });
  if (round % 2 === 0) {
    await until(() => store.end(session.sid, "logout"));
    acknowledge({ ended: session.sid });
  }
}

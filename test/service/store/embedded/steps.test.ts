import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SessionStore } from "../../../../src/service/session/ports.ts";
import { wallMs } from "../../../../src/service/session/time.ts";
import { createEmbeddedStore } from "../../../../src/service/store/embedded/store.ts";
import { MARKER_LIFE, REUSE_INTERVAL } from "../../../support/store/sessions.ts";
import { clockStepContract } from "../steps.ts";

clockStepContract("embedded", async () => {
  const directory = mkdtempSync(join(tmpdir(), "store-"));
  let wall = Date.now();
  let steady = 1_000;
  const stores: SessionStore[] = [];
  return {
    async open() {
      const store = createEmbeddedStore({
        path: join(directory, "sessions.db"),
        clock: () => wallMs(wall),
        steady: () => steady,
        reuseIntervalMs: REUSE_INTERVAL,
        markerLifeMs: MARKER_LIFE,
      });
      stores.push(store);
      return store;
    },
    async advance(ms) {
      wall += ms;
      steady += ms;
    },
    async step(ms) {
      wall += ms;
    },
    now: () => wall,
    async stop() {
      await Promise.all(stores.map((store) => store.close()));
      rmSync(directory, { recursive: true });
    },
  };
});

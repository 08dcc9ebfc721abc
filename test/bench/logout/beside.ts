/** The logouts of others, at a steady rate. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { bearer, type LoggedIn, logIn } from "../../support/sessions.ts";

export type Urls = { readonly publicUrl: string; readonly adminUrl: string; readonly adminToken: string };

type Order = { readonly service: Urls; readonly perSecond: number } | "stop";

/** How many logouts of others may be under way at once. */
const MAX_UNDER_WAY = 50;

/** Runs in a process of its own: logs out sessions at a steady rate, or fewer where the machine cannot keep up, until a message stops it. */
function logOutBeside(): void {
  const underWay = new Set<Promise<unknown>>();
  let [isOver, count] = [false, 0];
  // If the measurement is killed, nobody sends that message.
  process.on("disconnect", () => process.exit());
  process.on("message", async (order: Order) => {
    const startedAt = performance.now();
    isOver = order === "stop";
    for (let at = 0; order !== "stop" && !isOver; at++) {
      await sleep(Math.max(0, startedAt + (at * 1000) / order.perSecond - performance.now()));
      if (underWay.size >= MAX_UNDER_WAY) await Promise.race(underWay);
      const one: Promise<unknown> = logIn(order.service)
        .then((session) => logOut(order.service, session))
        .then(
          () => count++,
          (error: unknown) => console.error("beside:", error),
        )
        .finally(() => underWay.delete(one));
      underWay.add(one);
    }
    if (order === "stop") return;
    await Promise.all(underWay);
    process.send?.(Math.round((count * 1000) / (performance.now() - startedAt)));
    process.disconnect?.();
  });
}

/** Starts the logouts of others. Returns a function that ends them, and resolves with how many a second there were. */
export function startBeside({ publicUrl, adminUrl, adminToken }: Urls, perSecond: number): () => Promise<number> {
  if (perSecond === 0) return async () => 0;
  const child = fork(import.meta.filename);
  child.send({ service: { publicUrl, adminUrl, adminToken }, perSecond } satisfies Order);
  return async () => {
    child.send("stop" satisfies Order);
    return (await once(child, "message"))[0] as number;
  };
}

export async function logOut({ publicUrl }: Urls, { accessToken }: LoggedIn): Promise<void> {
  const response = await fetch(`${publicUrl}/v1/auth/logout`, { method: "DELETE", headers: bearer(accessToken) });
  if (!response.ok) throw new Error(`the logout responds ${response.status}`);
  await response.arrayBuffer();
}

if (import.meta.main) logOutBeside();

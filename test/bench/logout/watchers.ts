/** Plain readers of the revocation feed, without a verifier, in a process of their own. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { request } from "node:http";

type Order =
  | { readonly urls: readonly string[]; readonly adminToken: string; readonly count: number }
  | { readonly sid: string }
  | "messages";

/** Finds the ids of revoked sessions in the text of messages. Parsing the messages would take CPU time from the service. */
const SESSION_ID = /"sessionId":"([^"]+)"/g;

/** Occurs once in each message. */
const CURSOR = /"cursor":/g;

/** Opens watches, each on a connection of its own, in turns at each of the instances. */
export async function startWatchers(urls: readonly string[], adminToken: string, count: number) {
  const child = fork(import.meta.filename);
  const ask = async (order: Order): Promise<unknown> => {
    child.send(order);
    return (await once(child, "message"))[0];
  };
  await ask({ urls, adminToken, count });
  return {
    /** Resolves when every watcher has the end of a session, with the times of its arrivals. */
    arrivalsOf: async (sid: string) => (await ask({ sid })) as number[],
    /** Returns how many messages all watchers have received so far. */
    messages: async () => (await ask("messages")) as number,
    stop: () => void child.kill(),
  };
}

function watch(): void {
  const arrivals = new Map<string, number[]>();
  let [watchers, wanted, messages] = [0, "", 0];
  const reportWanted = () => {
    const times = arrivals.get(wanted);
    if (times?.length === watchers && arrivals.delete(wanted)) process.send?.(times);
  };
  const note = (chunk: Buffer) => {
    const now = performance.timeOrigin + performance.now();
    const text = chunk.toString("latin1");
    messages += text.match(CURSOR)?.length ?? 0;
    for (const [, sid = ""] of text.matchAll(SESSION_ID)) {
      const times = arrivals.get(sid);
      if (times === undefined) arrivals.set(sid, [now]);
      else times.push(now);
    }
    reportWanted();
  };
  const open = async (url: string, adminToken: string) => {
    const headers = { authorization: `Bearer ${adminToken}`, "content-type": "application/connect+json" };
    const path = "/auth.admin.v1.SessionAdminService/WatchRevocations";
    const asked = request(url + path, { method: "POST", headers, agent: false });
    asked.end(Buffer.from("\0\0\0\0\x02{}"));
    const [response] = await once(asked, "response");
    response.on("data", note);
    await once(response, "data");
  };
  process.on("message", async (order: Order) => {
    if (order === "messages") {
      process.send?.(messages);
      return;
    }
    if ("sid" in order) {
      wanted = order.sid;
      reportWanted();
      return;
    }
    watchers = order.count;
    for (let at = 0; at < watchers; at++) await open(order.urls[at % order.urls.length] ?? "", order.adminToken);
    process.send?.("open");
  });
}

if (import.meta.main) watch();

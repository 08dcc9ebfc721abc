/** Debian's Firefox, driven by WebDriver BiDi (W3C). */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { startProgram, whileRunning } from "../../support/processes.ts";
import { scratch } from "../../support/service.ts";
import { type Engine, type Tab, trustStore } from "./driver.ts";

/** Sends a command. @throws what the browser reports */
type Send = (method: string, params?: object) => Promise<Record<string, unknown>>;

type Reply = { readonly id: number | null; readonly result?: Record<string, unknown> };

/** The response of the browser to a script. The script has encoded its value as JSON. */
type Evaluation = {
  readonly result?: { readonly value?: string };
  readonly exceptionDetails?: { readonly text: string };
};

async function connect(address: string): Promise<Send> {
  const socket = new WebSocket(`${address}/session`);
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = reject;
  });
  const waiting = new Map<number, PromiseWithResolvers<Record<string, unknown>>>();
  socket.onmessage = ({ data }) => {
    const reply = JSON.parse(String(data)) as Reply;
    const command = waiting.get(reply.id ?? 0);
    if (reply.result === undefined) command?.reject(new Error(String(data)));
    else command?.resolve(reply.result);
    waiting.delete(reply.id ?? 0);
  };
  socket.onclose = () => {
    for (const command of waiting.values()) command.reject(new Error("Firefox has ended"));
  };
  let id = 0;
  return (method, params = {}) => {
    if (socket.readyState !== WebSocket.OPEN) return Promise.reject(new Error("Firefox has ended"));
    const command = Promise.withResolvers<Record<string, unknown>>();
    id += 1;
    waiting.set(id, command);
    socket.send(JSON.stringify({ id, method, params }));
    return command.promise;
  };
}

async function openTab(send: Send, userContext: unknown, url: string): Promise<Tab> {
  const { context } = await send("browsingContext.create", { type: "tab", userContext });
  const tab: Tab = {
    goto: async (next) => void (await send("browsingContext.navigate", { context, url: next, wait: "complete" })),
    // A page that comes from the back/forward cache is not loaded, so a command that waits for a load would wait forever.
    back: () => tab.evaluate("void setTimeout(() => history.back())"),
    async evaluate<T>(expression: string) {
      const { result, exceptionDetails } = (await send("script.evaluate", {
        expression: `(async () => JSON.stringify(await (${expression})))()`,
        target: { context },
        awaitPromise: true,
      })) as Evaluation;
      if (exceptionDetails !== undefined) throw new Error(exceptionDetails.text);
      return (result?.value === undefined ? undefined : JSON.parse(result.value)) as T;
    },
    close: async () => void (await send("browsingContext.close", { context })),
  };
  await tab.goto(url);
  return tab;
}

export async function startFirefox(authority: string): Promise<Engine> {
  const profile = trustStore(scratch(), authority);
  writeFileSync(join(profile, "user.js"), 'user_pref("network.dns.localDomains", "localhost");\n');
  const args = ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0", "about:blank"];
  const browser = startProgram("/usr/bin/firefox-esr", args, { env: { HOME: scratch() } });
  const address = await whileRunning(browser, async () => {
    const [, found] = /^WebDriver BiDi listening on (ws:\S+)$/m.exec(browser.output()) ?? [];
    if (found === undefined) throw new Error("no address yet");
    return found;
  });
  const send = await connect(address);
  await send("session.new", { capabilities: {} });
  const newUser = async () => (await send("browser.createUserContext")).userContext;
  let userContext = await newUser();
  return {
    open: (url) => openTab(send, userContext, url),
    async reset() {
      await send("browser.removeUserContext", { userContext });
      userContext = await newUser();
    },
    async close() {
      await send("browser.close").catch(() => {});
      await browser.exited;
    },
  };
}

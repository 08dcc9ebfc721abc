/** Sends what sign-in replies to a browser: a page, or a redirect. */
import { type Response, respond } from "../../platform/listener/exchange.ts";
import type { SignInPage } from "./pages.ts";

export type Reply = SignInPage | { readonly location: string; readonly cookies: readonly string[] };

export function withCookie(reply: Reply, cookie: string): Reply {
  if ("location" in reply) return { ...reply, cookies: [cookie, ...reply.cookies] };
  return { ...reply, headers: { ...reply.headers, "set-cookie": cookie } };
}

export function send(response: Response, reply: Reply): void {
  const always = { "cache-control": "no-store", "referrer-policy": "no-referrer" };
  if ("location" in reply) {
    const { location, cookies } = reply;
    respond(response, 303, { ...always, location, "set-cookie": [...cookies], "content-length": 0 });
  } else {
    const { status, headers, body } = reply;
    respond(response, status, { ...always, ...headers, "content-length": Buffer.byteLength(body) }, body);
  }
}

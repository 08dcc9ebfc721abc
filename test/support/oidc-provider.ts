/** Starts a real OpenID Connect provider on this machine, and a minimal browser that signs in at it. */
import { createServer } from "node:http";
import { type Configuration, Provider } from "oidc-provider";
import { freePort } from "./free-port.ts";

export async function startProvider(configuration: Configuration) {
  // The provider warns that its test settings are not fit for production.
  console.info = console.warn = () => {};
  const port = await freePort();
  const issuer = `http://127.0.0.1:${port}`;
  // The provider's own agent would refuse to call addresses of this machine.
  const onLoopback: typeof fetch = (url, { dispatcher: _, ...options } = {}) => fetch(url, options);
  const own = { cookies: { keys: ["a key of the provider"] }, fetch: onLoopback };
  const provider = new Provider(issuer, { ...own, ...configuration });
  const serve = provider.callback();
  const requests: string[] = [];
  const state = { isDown: false };
  const server = createServer((request, response) => {
    requests.push(request.url ?? "");
    if (state.isDown) response.writeHead(500).end();
    else void serve(request, response);
  }).listen(port, "127.0.0.1");
  return {
    issuer,
    /** The paths that were requested. */
    requests,
    setDown(isDown: boolean) {
      state.isDown = isDown;
    },
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}

type Page = { readonly url: string; readonly status: number; readonly text: string; readonly headers: Headers };

/** Returns a browser with cookies, redirects and forms. It does not follow redirects to other hosts than 127.0.0.1. */
export function openBrowser() {
  const jar = new Map<string, string>();
  async function send(url: string, form?: Readonly<Record<string, string>>, headers = {}): Promise<Page> {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(url, {
      redirect: "manual",
      headers: { cookie, "user-agent": "a browser", ...headers },
      ...(form !== undefined && { method: "POST", body: new URLSearchParams(form) }),
    });
    for (const one of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(one) ?? [];
      if (value === "" || /max-age=0|expires=Thu, 01 Jan 1970/i.test(one)) jar.delete(name);
      else jar.set(name, value);
    }
    const location = response.headers.get("location");
    const text = await response.text();
    const next = location === null ? undefined : new URL(location, url);
    return next === undefined || next.hostname !== "127.0.0.1"
      ? { url: next?.href ?? url, status: response.status, text, headers: response.headers }
      : send(next.href);
  }
  return {
    jar,
    send,
    /** Signs in at the provider, from the page that shows its form, and gives consent where that is asked. */
    async signIn(url: string, name: string): Promise<Page> {
      let page = await send(url);
      for (const form of [{ prompt: "login", login: name, password: "any" }, { prompt: "consent" }]) {
        const [, action] = /action="([^"]+)"/.exec(page.text) ?? [];
        if (action !== undefined && page.text.includes(`value="${form.prompt}"`)) page = await send(action, form);
      }
      return page;
    },
  };
}

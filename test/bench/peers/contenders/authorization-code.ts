/** An application that signs its users in by the authorization code flow with PKCE, and refreshes as a public client. */
import { createHash, randomBytes } from "node:crypto";
import { type Held, post, type Reply, type Running, send, sendRefresh, withCookies } from "./contender.ts";

export const APP = { client_id: "app", redirect_uri: "https://app.example/callback" } as const;

type Endpoints = { readonly authorize: string; readonly token: string; readonly revoke: string };

function heldBy(text: string): Held {
  const { refresh_token: kept, access_token: access } = JSON.parse(text);
  return { kept, access };
}

/**
 * @param follow returns where the browser goes next, if a redirect leads to a page that is not part of the server
 */
export function authorizationCode(
  { authorize, token, revoke }: Endpoints,
  more: Readonly<Record<string, string>>,
  follow: (url: URL) => Promise<string | undefined> = async () => undefined,
): Pick<Running, "logIn" | "refresh" | "logOut"> {
  async function logIn(): Promise<Held> {
    const verifier = randomBytes(32).toString("base64url");
    const challenge = createHash("sha256").update(verifier).digest("base64url");
    const query = new URLSearchParams({
      ...{ ...APP, ...more, response_type: "code", state: "of the application" },
      ...{ code_challenge: challenge, code_challenge_method: "S256" },
    });
    let [next, cookie] = [`${authorize}?${query}`, ""];
    while (!next.startsWith(APP.redirect_uri)) {
      const elsewhere = await follow(new URL(next));
      if (elsewhere !== undefined) {
        next = elsewhere;
        continue;
      }
      const reply: Reply = await send(next, { headers: { cookie } });
      cookie = withCookies(cookie, reply.headers);
      const location = reply.headers.get("location");
      if (location === null) throw new Error(`${reply.status} ${reply.text}`);
      next = new URL(location, next).href;
    }
    const code = new URL(next).searchParams.get("code") ?? "";
    const reply = await post(token, { ...APP, grant_type: "authorization_code", code, code_verifier: verifier });
    if (reply.status !== 200) throw new Error(`${next}: ${reply.status} ${reply.text}`);
    return heldBy(reply.text);
  }
  const { client_id } = APP;
  return {
    logIn,
    refresh: (held) =>
      sendRefresh(
        held,
        (init) => post(token, { client_id, grant_type: "refresh_token", refresh_token: held.kept }, init),
        ({ text }) => heldBy(text),
      ),
    async logOut({ kept }) {
      const { status, text } = await post(revoke, { client_id, token: kept, token_type_hint: "refresh_token" });
      if (status !== 200) throw new Error(`${status} ${text}`);
    },
  };
}

/** Cookie headers as browsers, proxies and attackers send them: which are read as the refresh token, and which are refused. */
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Service, startService } from "../support/service.ts";
import { logIn } from "../support/sessions.ts";

let plain: Service;
let prefixed: Service;
beforeAll(async () => {
  [plain, prefixed] = await Promise.all([startService(), startService({ COOKIE_NAME: "__Host-refresh_token" })]);
});
afterAll(() => Promise.all([plain.stop(), prefixed.stop()]));

/** Sends a refresh with exactly these bytes as its cookie headers. Returns the status. */
async function statusOf(service: Service, cookieLines: string): Promise<number> {
  const { hostname, port } = new URL(service.publicUrl);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  const head = `POST /v1/auth/refresh HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n${cookieLines}\r\n\r\n`;
  socket.end(Buffer.from(head, "latin1"));
  let received = "";
  for await (const chunk of socket.setEncoding("latin1")) received += chunk;
  return Number(received.slice(9, 12));
}

const many = (count: number) => Array.from({ length: count }, (_, i) => `c${i}=v`).join("; ");

describe("the refresh token is read", () => {
  test.each<[string, (token: string) => string]>([
    ["alone", (t) => `Cookie: refresh_token=${t}`],
    ["among others", (t) => `Cookie: a=b; refresh_token=${t}; c=d`],
    ["without spaces", (t) => `Cookie: a=b;refresh_token=${t};c=d`],
    ["with spaces and tabs around it", (t) => `Cookie: a=b; \t refresh_token \t= ${t} \t; c=d`],
    ["from a second line", (t) => `Cookie: a=b\r\nCookie: refresh_token=${t}`],
    ["twice, the same", (t) => `Cookie: refresh_token=${t}; refresh_token=${t}`],
    ["after five hundred others", (t) => `Cookie: ${many(500)}; refresh_token=${t}`],
    ["among pieces that are no pairs", (t) => `Cookie: ;; = ; x; refresh_token=${t};;`],
    [
      "beside a name that is nearly the same",
      (t) => `Cookie: Refresh_token=x; xrefresh_token=y; refresh_token=${t}; refresh_tokens=z`,
    ],
  ])("%s", async (_, lines) => {
    const { refreshToken } = await logIn(plain);
    expect(await statusOf(plain, lines(refreshToken))).toBe(200);
  });
});

describe("nothing is read, and nothing but 401 or 400 is the response", () => {
  test.each<[string, (token: string, other: string) => string]>([
    ["two that differ", (t, o) => `Cookie: refresh_token=${t}; refresh_token=${o}`],
    ["two that differ, in two lines", (t, o) => `Cookie: refresh_token=${t}\r\nCookie: refresh_token=${o}`],
    ["an empty one", () => "Cookie: refresh_token="],
    ["a name in other letters", (t) => `Cookie: REFRESH_TOKEN=${t}`],
    ["a name after a no-break space", (t) => `Cookie: \xa0refresh_token=${t}`],
    ["a name after a vertical tab", (t) => `Cookie: a=b; \x0brefresh_token=${t}`],
    ["a value with a suffix", (t) => `Cookie: refresh_token=${t}x`],
    ["a value cut by a comma", (t) => `Cookie: refresh_token=${t},a=b`],
    ["a name in a value", (t) => `Cookie: a="; refresh_token=${t.slice(0, 20)}"`],
    ["bytes beyond ASCII", () => "Cookie: refresh_token=\xff\xfe\x80"],
    ["a value of 12 KiB", () => `Cookie: refresh_token=${"A".repeat(12_000)}`],
    ["a header of another name", (t) => `Cookies: refresh_token=${t}`],
  ])("%s", async (_, lines) => {
    const [user, other] = [await logIn(plain), await logIn(plain)];
    expect([400, 401]).toContain(await statusOf(plain, lines(user.refreshToken, other.refreshToken)));
    // The refused request has not ended the session.
    expect(await statusOf(plain, `Cookie: refresh_token=${user.refreshToken}`)).toBe(200);
  });
});

test.each<[string, (token: string) => string]>([
  ["the plain name", (t) => `Cookie: refresh_token=${t}`],
  ["the plain name beside an empty prefixed one", (t) => `Cookie: __Host-refresh_token=; refresh_token=${t}`],
  ["the prefix in other letters", (t) => `Cookie: __host-refresh_token=${t}`],
  ["the other prefix", (t) => `Cookie: __Secure-refresh_token=${t}`],
  ["the prefixed name after a no-break space", (t) => `Cookie: \xa0__Host-refresh_token=${t}`],
  ["the prefixed name as the value of a nameless cookie", (t) => `Cookie: =__Host-refresh_token=${t}`],
])("a session cannot be planted under a prefixed name by %s", async (_, lines) => {
  const { refreshToken } = await logIn(prefixed);
  expect(await statusOf(prefixed, lines(refreshToken))).toBe(401);
  expect(await statusOf(prefixed, `Cookie: __Host-refresh_token=${refreshToken}`)).toBe(200);
});

/** React Router 8 has separate URLs for pages and for their data, and passes both to a middleware. */
import { expect, test } from "vitest";
import { createServerSessions, type User } from "../../src/server/index.ts";
import { sessionMiddleware } from "../../src/server/react-router.ts";

const ORIGIN = "http://application.example";

// Requests without cookies have no session, so the kit calls neither the service nor the verifier.
const sessions = createServerSessions({
  service: "http://127.0.0.1:9",
  verifier: { verify: () => Promise.reject(new Error("there is no token")) },
});

/** Returns the response to a script that fetches the data of a page. */
function fetchData(data: string, page: string, headers = { "sec-fetch-mode": "cors" }) {
  const request = new Request(ORIGIN + data, { headers });
  const context = { set(_key: object, _user: User) {} };
  const middleware = sessionMiddleware(sessions, {}, { isPublic: (path) => path === "/" });
  return middleware({ request, url: new URL(page, ORIGIN), context }, async () => new Response("data"));
}

test.each([
  ["/_.data", "/"],
  ["/login.data", "/login"],
  ["/login.data?next=%2F", "/login?next=%2F"],
])("%s is open, as %s is", async (data, page) => {
  expect(await (await fetchData(data, page)).text()).toBe("data");
});

test("the data of a protected page leads to the login, and from there to the page", async () => {
  const { status, headers } = await fetchData("/account.data?tab=2&_routes=root", "/account?tab=2");
  expect([status, headers.get("location")]).toEqual([303, "/login?next=%2Faccount%3Ftab%3D2"]);
});

test("a script that fetches a protected address itself gets 401", async () => {
  expect((await fetchData("/account", "/account")).status).toBe(401);
});

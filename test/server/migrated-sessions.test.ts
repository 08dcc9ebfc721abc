/** A server that renders pages continues the sessions of another system (MIGRATE_COOKIES). */
import { afterAll, beforeAll, expect, test } from "vitest";
import { aService } from "../support/every-protocol.ts";
import { startApplication, type TestApplication } from "../support/migration/application.ts";
import { somebody } from "../support/sessions.ts";
import { aServer, aVerifier, COOKIES, signIn } from "./world.ts";

let application: TestApplication;
beforeAll(async () => {
  application = await startApplication();
});
afterAll(() => application.stop());

const service = aService({
  ...COOKIES,
  MIGRATE_COOKIES: "connect.sid,next-auth.session-token",
  get MIGRATE_URL() {
    return application.url;
  },
});
const kept = aVerifier(service);
const migrateCookies = ["connect.sid", "next-auth.session-token"];
const page = (cookie: string) =>
  new Request("https://app.example/", {
    headers: { cookie, "sec-fetch-dest": "document", "sec-fetch-mode": "navigate" },
  });

test("a page with an old session is rendered for its user, with the new cookies", async () => {
  const { sessions } = aServer(service, kept.verifier, { migrateCookies });
  for (const cookie of [
    "connect.sid=a",
    "__Secure-next-auth.session-token.0=a; __Secure-next-auth.session-token.1=b",
  ]) {
    const subject = somebody();
    application.reply(cookie, { subject });
    const { user, setCookies } = await sessions.authenticate(page(cookie));
    expect(user).toMatchObject({ state: "active", claims: { sub: subject } });
    expect(setCookies.join("\n")).toMatch(/refresh_token=[\w-]{96};/);
  }
});

test("an old session that is none is nobody, and one that the application cannot be asked for is unknown", async () => {
  const { sessions } = aServer(service, kept.verifier, { migrateCookies });
  application.reply("connect.sid=none", 204);
  application.reply("connect.sid=down", 500);
  expect((await sessions.authenticate(page("connect.sid=none"))).user.state).toBe("ended");
  expect((await sessions.authenticate(page("connect.sid=down"))).user.state).toBe("unavailable");
});

test("without the option, and for other cookies, the service is not asked", async () => {
  const before = application.asked.length;
  application.reply("connect.sid=b", { subject: somebody() });
  const plain = aServer(service, kept.verifier).sessions;
  expect((await plain.authenticate(page("connect.sid=b"))).user.state).toBe("ended");
  const { sessions } = aServer(service, kept.verifier, { migrateCookies });
  expect((await sessions.authenticate(page("theme=connect.sid; connect.sid="))).user.state).toBe("ended");
  expect(application.asked.length).toBe(before);
});

test("the cookie of the service comes first", async () => {
  const jar = await signIn(service, somebody());
  jar.cookies.delete("access_token");
  jar.cookies.set("connect.sid", "c");
  const { sessions } = aServer(service, kept.verifier, { migrateCookies });
  const before = application.asked.length;
  expect((await sessions.authenticate(jar.request("/"))).user.state).toBe("active");
  expect(application.asked.length).toBe(before);
});

/** A session keeps who made the request for a page, and not the server that has refreshed it (LAST_SEEN). */
import { expect, test } from "vitest";
import { aService } from "../support/every-protocol.ts";
import { admin, bearer, message, openAdmin, somebody } from "../support/sessions.ts";
import { aServer, aVerifier, COOKIES, signIn } from "./world.ts";

const service = aService({ ...COOKIES, LAST_SEEN: "full", TRUST_PROXY: "1" });
const kept = aVerifier(service);

test("the browser's user agent and address are kept, whatever address the browser claims", async () => {
  const subject = somebody();
  const jar = await signIn(service, subject);
  jar.cookies.delete("access_token");
  const { sessions } = aServer(service, kept.verifier);
  const headers = { "user-agent": "Firefox/140.0", "x-forwarded-for": "203.0.113.66" };
  const { user } = await sessions.authenticate(jar.request("/", headers), "198.51.100.9");
  expect(user.state).toBe("active");
  const listed = await openAdmin(service).call(admin.listSessions, { subject }, bearer(service.adminToken));
  const [session] = message(listed).sessions;
  expect(session?.lastSeenClient).toMatchObject({ userAgent: "Firefox/140.0", ipAddress: "198.51.100.9" });
});

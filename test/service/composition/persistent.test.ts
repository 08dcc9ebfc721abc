/** Sessions that are not to be remembered: none of their cookies outlives the browser, whatever the outcome of a refresh. */
import { describe, expect, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { aService, STORES } from "../../support/every-protocol.ts";
import { admin, bearer, cookie, message, openAdmin, openPublic, somebody } from "../../support/sessions.ts";

const COOKIES = { SESSION_HINT_COOKIE: "signed_in", ACCESS_COOKIE: "access_token", COOKIE_PATH: "/" };
const NAMES = ["refresh_token", "signed_in", "access_token"];

/** Presents a refresh token, and returns the cookies of the response. */
async function refreshed(service: { readonly publicUrl: string }, token: string): Promise<readonly string[]> {
  const response = await openPublic(service).call(SessionService.method.refresh, {}, cookie(token));
  message(response);
  return response.headers.getSetCookie();
}

const tokenIn = (lines: readonly string[]) => /^refresh_token=([^;]*)/.exec(lines[0] ?? "")?.[1] ?? "";

describe.each(STORES)("on the %s store", (store) => {
  describe.each([
    ["10s", "repeats", true],
    ["0", "recovers", false],
  ])("with REUSE_INTERVAL=%s, where a token that is presented again %s,", (reuseInterval, _, isRepeated) => {
    const service = aService({ ...COOKIES, REUSE_INTERVAL: reuseInterval }, store);

    test.each([[false], [undefined]])("persistent: %s", async (persistent) => {
      const wanted = { subject: somebody(), ...(persistent === false && { persistent }) };
      const login = message(
        await openAdmin(service).call(admin.createSession, wanted, bearer(service.adminToken)),
      ).setCookies;
      const first = await refreshed(service, tokenIn(login));
      const again = await refreshed(service, tokenIn(login));
      expect(tokenIn(again) === tokenIn(first)).toBe(isRepeated);
      const second = await refreshed(service, tokenIn(again));
      for (const lines of [login, first, again, second]) {
        expect(lines.map((line) => line.slice(0, line.indexOf("=")))).toEqual(NAMES);
        for (const line of lines) {
          expect(/; Max-Age=[1-9]\d*$/.test(line), line).toBe(persistent === undefined);
          if (persistent === false) expect(line).not.toMatch(/max-age|expires/i);
        }
      }
    });
  });
});

import { expect, test } from "vitest";
import { oldCookiesAfterLogout } from "../../../../src/service/api/public/removed-cookies.ts";
import type { CookieSettings } from "../../../../src/service/config/cookie.ts";

const settings: CookieSettings = {
  ...{ name: "refresh_token", domain: undefined, path: undefined, sameSite: "None", secure: true, partitioned: true },
  ...{ migrateUntilMs: undefined, previousScopes: [], hintName: undefined, accessName: undefined },
};
const sent = { header: "a=1; sid=2", origin: "https://example.com" };

test.each([
  [true, ["; Partitioned", ""]],
  [false, [""]],
])(
  "cookies of another system are removed in both forms if those of this one are partitioned: %s",
  (partitioned, forms) => {
    const wanted = ["Path=/", "Path=/; Domain=example.com"].flatMap((where) =>
      forms.map((form) => `sid=; ${where}; HttpOnly; Secure; SameSite=None${form}; Max-Age=0`),
    );
    expect(oldCookiesAfterLogout(["sid"], { ...settings, partitioned }, sent)).toEqual(wanted);
  },
);

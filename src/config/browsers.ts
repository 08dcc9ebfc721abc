/** The settings that determine which browser requests are accepted, and the settings of the cookies. */
import { type CookieSettings, cookieFaults, cookieScope } from "./cookie.ts";
import type { AddFault, Read } from "./reader.ts";
import { boolean, date, list, oneOf, origin, text } from "./values.ts";

export function readBrowsers(read: Read, addFault: AddFault) {
  const cookie: CookieSettings = Object.freeze({
    name: read("COOKIE_NAME", text(64), "refresh_token"),
    domain: read("COOKIE_DOMAIN", text(253), undefined),
    path: read("COOKIE_PATH", text(1024), undefined),
    sameSite: read("COOKIE_SAMESITE", oneOf("Strict", "Lax", "None"), "Lax" as const),
    secure: read("COOKIE_SECURE", boolean, true),
    migrateUntilMs: read("COOKIE_MIGRATE_UNTIL", date, undefined),
    previousScopes: read("COOKIE_PREVIOUS_SCOPES", list(cookieScope), []),
    hintName: read("SESSION_HINT_COOKIE", text(64), undefined),
    accessName: read("ACCESS_COOKIE", text(64), undefined),
  });
  for (const line of cookieFaults(cookie)) addFault(line);
  return {
    allowedOrigins: read("ALLOWED_ORIGINS", list(origin), []),
    allowSameSite: read("ALLOW_SAME_SITE", boolean, true),
    cookie,
  };
}

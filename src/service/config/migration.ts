/** The settings of migration: sessions of another system become sessions of this service when their browser asks for a refresh. */
import type { CookieSettings } from "./cookie.ts";
import type { AddFault, Read } from "./reader.ts";
import { invalid, list, type Parsed, plainUrl, valid } from "./values.ts";

/** How many names are looked for in each request without a refresh token. */
const MAX_NAMES = 16;

function cookieName(text: string): Parsed<string> {
  return /^[!#$%&'*+.^_`|~\w-]{1,64}$/.test(text) ? valid(text) : invalid("has an item that is not a cookie's name");
}

export function readMigration(read: Read, addFault: AddFault, { name, hintName, accessName }: CookieSettings) {
  const migration = {
    /** The cookies of sessions of another system, in the order in which they are looked for. */
    migrateCookies: read("MIGRATE_COOKIES", list(cookieName), [] as readonly string[]),
    /** The URL at which the application says whose session such a cookie names. */
    migrateUrl: read("MIGRATE_URL", plainUrl, undefined),
  };
  const { migrateCookies } = migration;
  if (migrateCookies.length > MAX_NAMES) addFault(`MIGRATE_COOKIES has more than ${MAX_NAMES} names`);
  const own = { COOKIE_NAME: name, SESSION_HINT_COOKIE: hintName, ACCESS_COOKIE: accessName };
  for (const [variable, cookie] of Object.entries(own)) {
    if (cookie === undefined) continue;
    const names = [cookie, cookie.replace(/^__(?:Host|Secure)-/, "")];
    if (names.some((each) => migrateCookies.includes(each))) addFault(`MIGRATE_COOKIES has the name in ${variable}`);
  }
  return migration;
}

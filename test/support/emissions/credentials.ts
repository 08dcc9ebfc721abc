/** What of a text is a credential: the parts of tokens and keys without which they are worth nothing. */

/** A refresh token has 96 characters and a device cookie 124; the last 42 of both hold nothing but the MAC. */
const REFRESH_TOKEN = /(?<![\w-])[\w-]{54}([\w-]{42})(?![\w-])/g;
const DEVICE_COOKIE = /(?<![\w-])[\w-]{82}([\w-]{42})(?![\w-])/g;
/** A signed JWT. Header and claims alone open nothing. */
const ACCESS_TOKEN = /eyJ[\w-]+\.eyJ[\w-]+\.([\w-]{43,})/g;
/** Members of a JWK that only its owner knows, of which those in a key ring are `d` and `k`. */
const SECRET_MEMBERS = new Set(["d", "k"]);

/** The credentials in a text that may hold some: the response to a refresh, a `Set-Cookie` header. */
export function credentialsIn(text: string): string[] {
  return [REFRESH_TOKEN, DEVICE_COOKIE, ACCESS_TOKEN].flatMap((shape) =>
    Array.from(text.matchAll(shape), (match) => match[1] ?? ""),
  );
}

/** The secret members of every key in a key ring. */
export function secretsOfRing(json: string): string[] {
  const secrets: string[] = [];
  JSON.parse(json, (name, value: unknown) => {
    if (SECRET_MEMBERS.has(name) && typeof value === "string") secrets.push(value);
    return value;
  });
  return secrets;
}

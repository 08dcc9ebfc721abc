/** Finds the credentials in a text: the parts of tokens and keys that give access. */

/** A refresh token has 96 characters and a device cookie 124; the last 42 of both hold nothing but the MAC. */
const REFRESH_TOKEN = /(?<![\w-])[\w-]{54}([\w-]{42})(?![\w-])/g;
const DEVICE_COOKIE = /(?<![\w-])[\w-]{82}([\w-]{42})(?![\w-])/g;
/** Matches a signed JWT. The header and claims alone give no access. */
const ACCESS_TOKEN = /eyJ[\w-]+\.eyJ[\w-]+\.([\w-]{43,})/g;
/** The members of a JWK that only its owner knows. A key ring has `d` and `k`. */
const SECRET_MEMBERS = new Set(["d", "k"]);

/** Returns the credentials in a text, such as the response to a refresh or a `Set-Cookie` header. */
export function credentialsIn(text: string): string[] {
  return [REFRESH_TOKEN, DEVICE_COOKIE, ACCESS_TOKEN].flatMap((shape) =>
    Array.from(text.matchAll(shape), (match) => match[1] ?? ""),
  );
}

/** Returns the secret members of every key in a key ring. */
export function secretsOfRing(json: string): string[] {
  const secrets: string[] = [];
  JSON.parse(json, (name, value: unknown) => {
    if (SECRET_MEMBERS.has(name) && typeof value === "string") secrets.push(value);
    return value;
  });
  return secrets;
}

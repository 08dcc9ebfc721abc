/**
 * Returns whether a value is an http:// or https:// URL that `fetch` takes: one without credentials. For one with them, it throws an
 * error whose text contains the password.
 */
export function isHttpUrl(value: unknown): value is string {
  if (typeof value !== "string" || !URL.canParse(value)) return false;
  const { protocol, username, password } = new URL(value);
  return /^https?:$/.test(protocol) && username === "" && password === "";
}

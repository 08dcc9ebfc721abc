/**
 * Returns the members of an object in a file of credentials. The message of a fault does not repeat an unknown name, which may be a secret
 * in the wrong place.
 *
 * @param at the place in the file
 * @throws Fault if it is no object, a required member is missing, or a member is unknown
 */
export function requireMembers(
  Fault: new (message: string) => Error,
  at: string,
  value: unknown,
  required: readonly string[],
  optional: readonly string[] = [],
): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Fault(`${at}: not an object`);
  const missing = required.find((name) => !Object.hasOwn(value, name));
  if (missing !== undefined) throw new Fault(`${at}: ${missing} is missing`);
  const known = [...required, ...optional];
  if (Object.keys(value).every((name) => known.includes(name))) return value as Readonly<Record<string, unknown>>;
  throw new Fault(`${at}: has members other than ${known.join(", ")}`);
}

/** Reads and writes the parameters of `/v1/auth/login`. */
import type { Wishes } from "./provider.ts";

export const LOGIN = "/v1/auth/login";
const PROMPTS: readonly string[] = ["none", "login", "consent", "select_account"];

/** Returns what a login asks of the provider; undefined if a parameter is invalid. */
export function wishesOf(query: URLSearchParams): Wishes | undefined {
  const [prompt, maxAge, acr] = ["prompt", "max_age", "acr_values"].map((name) => query.get(name) ?? undefined);
  if (prompt !== undefined && !PROMPTS.includes(prompt)) return undefined;
  if (maxAge !== undefined && !/^\d{1,9}$/.test(maxAge)) return undefined;
  if (acr !== undefined && (acr.length > 255 || !/^[\x21-\x7e]+( [\x21-\x7e]+)*$/.test(acr))) return undefined;
  return {
    ...(prompt !== undefined && { prompt }),
    ...(maxAge !== undefined && { maxAgeSeconds: Number(maxAge) }),
    ...(acr !== undefined && { acrValues: acr.split(" ") }),
  };
}

export function loginUrl(query: URLSearchParams, provider: string): string {
  const chosen = new URLSearchParams(query);
  chosen.set("provider", provider);
  return `${LOGIN}?${chosen}`;
}

/** What bench:peers compares. Each contender is a process of its own, with its store, and the client that its documentation describes. */
import { startBetterAuth } from "./contenders/better-auth.ts";
import type { Contender } from "./contenders/contender.ts";
import { startOidcProvider } from "./contenders/oidc-provider.ts";
import { startOurs } from "./contenders/ours.ts";

export const CONTENDERS: readonly Contender[] = [
  { name: "this service, Redis", start: startOurs("redis") },
  { name: "this service, embedded", start: startOurs("embedded") },
  { name: "node-oidc-provider", start: startOidcProvider("default") },
  { name: "`rotateRefreshToken: false`", start: startOidcProvider("off") },
  { name: "better-auth", start: startBetterAuth("default") },
  { name: "`updateAge: 0`", start: startBetterAuth("renewed") },
  { name: "`cookieCache`", start: startBetterAuth("cached") },
  { name: "a JWT each time", start: startBetterAuth("token") },
];

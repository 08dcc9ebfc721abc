/** What bench:peers compares. Each contender is a process of its own, with its store, and the client that its documentation describes. */
import { startBetterAuth } from "./contenders/better-auth.ts";
import type { Contender } from "./contenders/contender.ts";
import { startHydra } from "./contenders/hydra.ts";
import { startOidcProvider } from "./contenders/oidc-provider.ts";
import { startOurs } from "./contenders/ours.ts";

/** The program of Ory Hydra, which npm does not bring, and the directory with the programs of PostgreSQL that it needs. */
export const { PEER_HYDRA, PEER_POSTGRES = "/usr/lib/postgresql/15/bin" } = process.env;

export const CONTENDERS: readonly Contender[] = [
  { name: "this service, Redis", start: startOurs("redis") },
  { name: "this service, embedded", start: startOurs("embedded") },
  { name: "node-oidc-provider", start: startOidcProvider("default") },
  { name: "`rotateRefreshToken: false`", start: startOidcProvider("off") },
  { name: "better-auth", start: startBetterAuth("default") },
  { name: "`updateAge: 0`", start: startBetterAuth("renewed") },
  { name: "`cookieCache`", start: startBetterAuth("cached") },
  { name: "a JWT each time", start: startBetterAuth("token") },
  ...(PEER_HYDRA === undefined
    ? []
    : [
        { name: "Hydra", start: startHydra(PEER_HYDRA, PEER_POSTGRES, "0s") },
        { name: "`rotation_grace_period`", start: startHydra(PEER_HYDRA, PEER_POSTGRES, "10s") },
      ]),
];

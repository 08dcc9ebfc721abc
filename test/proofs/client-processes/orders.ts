import type { webcrypto } from "node:crypto";

export const TOKEN_PATH = "/v1/oauth/token";

/** What a process of the client is started with. */
export type Orders = {
  /** Where requests go: the proxy. */
  readonly service: string;
  /** The URL that proofs are for. */
  readonly publicUrl: string;
  readonly file: string;
  /** Has all tokens that were ever in the file, a line each. */
  readonly history: string;
  readonly tokenLifeMs: number;
  readonly requestTimeoutMs: number;
  /** The private key of the client, if it has one. */
  readonly key?: webcrypto.JsonWebKey;
};

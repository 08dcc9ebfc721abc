/** What a process of the client is started with. */
export type Orders = {
  /** Where requests go: the proxy. */
  readonly service: string;
  readonly file: string;
  /** Has tokens that were ever in the file, a line each. */
  readonly history: string;
  readonly presents: "the file" | "any generation";
  readonly tokenLifeMs: number;
  readonly requestTimeoutMs: number;
};

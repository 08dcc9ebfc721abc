/** The options with which a process of the client is started. */
export type Orders = {
  /** The URL to which requests are sent: that of the proxy. */
  readonly service: string;
  readonly file: string;
  /** The file with all tokens that were ever stored, one per line. */
  readonly history: string;
  readonly presents: "the file" | "any generation";
  readonly tokenLifeMs: number;
  readonly requestTimeoutMs: number;
};

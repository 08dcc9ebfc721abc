import type { Audience } from "../model.ts";
import type { StoreMs } from "../time.ts";
import type { Actors } from "./actors.ts";

/** How a token differs from the one that it is made of. */
export type Narrowing = {
  readonly audience: Audience;
  readonly clientId: string;
  /** The names of the claims that are kept, beside those that every token of the session has. */
  readonly claims: readonly string[];
  readonly act: Actors | undefined;
  readonly cnf: { readonly jkt: string } | undefined;
  /** When the token ends at the latest. It never outlives the other one. */
  readonly endsAt: StoreMs;
};

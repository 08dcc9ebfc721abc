/** Messages between a test and a process of verifiers. */
export type Order =
  | {
      readonly do: "start";
      readonly count: number;
      /** The URLs of the admin API; each verifier follows one of these. */
      readonly adminUrls: readonly string[];
      readonly adminToken: string;
      readonly issuer: string;
    }
  /** An order to verify this token until all verifiers refuse it as revoked. */
  | { readonly do: "watch"; readonly token: string }
  /** An order to verify all of these tokens once more. */
  | { readonly do: "check"; readonly dead: readonly string[]; readonly live: readonly string[] };

/** When one verifier first refused one token, in ms on the clock that all processes of a machine share. */
export type Refusal = { readonly refusedAt: number; readonly lastAcceptedAt: number };

export type Report =
  | { readonly did: "start" }
  /** A report that every verifier has accepted the token. */
  | { readonly did: "watch"; readonly token: string }
  | { readonly did: "refuse"; readonly token: string; readonly refusals: readonly Refusal[] }
  /** The wrong verdicts, as text. */
  | { readonly did: "check"; readonly wrong: readonly string[] };

/** Returns CLOCK_MONOTONIC in ms. */
export const now = () => Number(process.hrtime.bigint()) / 1e6;

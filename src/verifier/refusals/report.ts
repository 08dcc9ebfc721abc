import type { ProofRefusal } from "../../platform/dpop/proof.ts";
import type { Refusal } from "../verdict.ts";

/** Texts by the name of a claim, or of a header member. */
export type Details = Readonly<Record<string, string>>;

/** The refusals for one reason. */
export type RefusalRecord = {
  /** How many tokens were refused for this reason since the verifier was created. */
  readonly count: number;
  /** What this verifier expected of the token that was reported last, by the name of a claim, or of a header member. */
  readonly expected: Details;
  /**
   * What that token had. The texts are at most 200 characters long, without control characters. For reasons up to `forged`, they are not
   * signed by the issuer: anybody can have written them.
   */
  readonly received: Details;
};

export type VerifierEvent =
  | { readonly event: "keys_read"; readonly kids: readonly string[] }
  /** The key set cannot be read. This is reported once per outage. The known keys stay in use for an hour. */
  | { readonly event: "keys_unreadable"; readonly error: unknown }
  | { readonly event: "feed_following" }
  /** The feed was interrupted. This is reported once per outage. No revocations are received until the next `feed_following`. */
  | { readonly event: "feed_lost"; readonly error: unknown }
  /** A token was refused. This is reported at most once a minute for each reason. */
  | ({ readonly event: "token_refused"; readonly reason: Refusal | ProofRefusal } & RefusalRecord);

export type Report = (event: VerifierEvent) => void;

/** How many errors of a chain of causes become part of the text. */
const MAX_CAUSES = 5;

/** Returns the messages of an error and its causes: "fetch failed" alone does not say which address refused the connection. */
function textOf(error: Error): string {
  const messages: string[] = [];
  for (let each: unknown = error; each instanceof Error && messages.length < MAX_CAUSES; each = each.cause) {
    messages.push(each.message || each.name);
  }
  return messages.join(": ");
}

/** Lets an error appear in JSON as its text. The members of an Error are not enumerable, so that a log in JSON would have `{}`. */
function showInJson(error: unknown): void {
  if (!(error instanceof Error) || "toJSON" in error) return;
  Reflect.defineProperty(error, "toJSON", { value: () => textOf(error), configurable: true });
}

/** Wraps a report so that it never throws or rejects: a failing log must not stop the process. */
export function toSafeReport(report: Report): Report {
  return (event) => {
    try {
      if ("error" in event) showInJson(event.error);
      // The type allows async functions too.
      Promise.resolve(report(event)).catch(() => {});
    } catch {
      // An error of `report` is ignored, because it cannot be reported.
    }
  };
}

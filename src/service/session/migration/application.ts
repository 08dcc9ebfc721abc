/** The application whose sessions are migrated. It alone can read them. */
import type { ClientData } from "../model.ts";

export type Question = {
  /** The name of the cookie that presents the old session. */
  readonly cookieName: string;
  /** The old cookies as the browser has sent them, in the form of a `Cookie` header. */
  readonly cookies: string;
  readonly client: ClientData;
};

/** `unknown`: there is no such session. `failed`: the application has not responded, for a reason of a few words. */
export type ApplicationReply =
  | { readonly ok: true; readonly body: string }
  | { readonly ok: false; readonly reason: "unknown" }
  | { readonly ok: false; readonly reason: "failed"; readonly fault: string };

export interface Application {
  /** Asks once. It never rejects. */
  ask(question: Question): Promise<ApplicationReply>;
}

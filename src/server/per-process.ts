/** Keeps one value for each process. */

/** Bundlers of frameworks load a module several times in one process, so a variable of a module would exist several times. */
const KEPT = Symbol.for("@session-service/server");

/**
 * Returns a function that creates a value when it is called for the first time in the process, and then returns that value. Next.js loads
 * modules once for `proxy.ts`, once for `instrumentation.ts` and once for pages: with this they share one verifier, which follows one feed,
 * and their refreshes. Nothing is created while a build loads the module. A development server keeps the value when it loads the module
 * again.
 * @param name distinguishes the values of a process
 * @example
 * ```ts
 * import { createServerSessions, perProcess } from "@session-service/server";
 *
 * export const getSessions = perProcess("sessions", () =>
 *   createServerSessions({ service: "http://127.0.0.1:8080", verifier: createVerifier({ adminUrl, adminToken, issuer, audience }) }),
 * );
 * ```
 */
export function perProcess<Value>(name: string, create: () => Value): () => Value {
  return () => {
    const kept = globalThis as { [KEPT]?: Map<string, unknown> };
    kept[KEPT] ??= new Map();
    if (!kept[KEPT].has(name)) kept[KEPT].set(name, create());
    return kept[KEPT].get(name) as Value;
  };
}

/** A sequential model of the sessions of one subject: the outputs that operations have when they run one after the other. */
import type { Model, Operation } from "./linearizability.ts";

/**
 * The inputs of operations. The client chooses the name of a session, so that the name is known even if the response to the login is
 * lost.
 */
export type Input =
  | { readonly verb: "create" | "refresh" | "update" | "logout" | "revoke"; readonly name: string }
  /** `sv` is the version in the access token of the call; absent for a refresh token, which is never stale. */
  | { readonly verb: "introspect" | "revokeOthers"; readonly name: string; readonly sv?: number }
  | { readonly verb: "revokeSubject"; readonly except?: string }
  | { readonly verb: "list" };

/**
 * The outputs of operations: `live` or `dead` (`E001_AUTH_FAILURE`, not active) for one session, the number of sessions that were ended,
 * or the list of live sessions. A refresh of a session that was updated returns how often, as its access token says it.
 */
export type Output = "live" | "dead" | `live ${number}` | number | readonly string[];

/** The live sessions, and how often each was updated. Every update makes the access tokens from before it stale. */
export type State = ReadonlyMap<string, number>;

const without = (state: State, name: string): State => new Map([...state].filter(([each]) => each !== name));
const only = (state: State, name: string | undefined): State => new Map([...state].filter(([each]) => each === name));

/** Returns the state after an operation, and its output. */
function run(state: State, input: Input): { readonly after: State; readonly output: Output } {
  if (input.verb === "list") return { after: state, output: [...state.keys()].toSorted() };
  if (input.verb === "revokeSubject") {
    const after = only(state, input.except);
    return { after, output: state.size - after.size };
  }
  const { verb, name } = input;
  const version = state.get(name);
  const live = version !== undefined;
  const status = live ? "live" : "dead";
  const isStale = "sv" in input && input.sv !== undefined && live && input.sv < version;
  switch (verb) {
    case "create":
      return { after: new Map([...state, [name, 0]]), output: "live" };
    case "refresh":
      return { after: state, output: version ? `live ${version}` : status };
    case "update":
      return { after: live ? new Map([...state, [name, version + 1]]) : state, output: status };
    case "introspect":
      return { after: state, output: isStale ? "dead" : status };
    case "logout":
      return { after: without(state, name), output: status };
    case "revoke":
      return { after: without(state, name), output: live ? 1 : 0 };
    case "revokeOthers":
      return live && !isStale ? { after: only(state, name), output: state.size - 1 } : { after: state, output: "dead" };
  }
}

const same = (a: Output, b: Output) => JSON.stringify(a) === JSON.stringify(b);

export const subjectModel: Model<State, Input, Output> = {
  initial: new Map(),
  step(state, input, output) {
    const expected = run(state, input);
    return output === undefined || same(expected.output, output) ? expected.after : undefined;
  },
  key: (state) =>
    [...state]
      .map((each) => each.join(" "))
      .toSorted()
      .join(),
};

export type SubjectOperation = Operation<Input, Output>;

/** Formats a history as text. */
export function show(operations: readonly SubjectOperation[]): string {
  const start = Math.min(...operations.map(({ invokedAt }) => invokedAt));
  return operations
    .map(({ input, output, invokedAt, returnedAt }) => {
      const { verb, ...rest } = input;
      const what = `${verb} ${Object.values(rest).join()} → ${output === undefined ? "?" : JSON.stringify(output)}`;
      return `${(invokedAt - start).toFixed(2)} – ${(returnedAt - start).toFixed(2)}  ${what}`;
    })
    .join("\n");
}

/** The sessions of one subject, as somebody would see them who did one thing after the other. */
import type { Model, Operation } from "./linearizability.ts";

/** Sessions go by a name that their creator gave them, known even where the answer was lost. */
export type Input =
  | { readonly verb: "create" | "refresh" | "introspect" | "logout" | "revoke" | "revokeOthers"; readonly name: string }
  | { readonly verb: "revokeSubject"; readonly except?: string }
  | { readonly verb: "list" };

/**
 * `live` and `dead` (`E001_AUTH_FAILURE`, not active) tell of the session that was named; a number, how many ended;
 * a list, which live.
 */
export type Output = "live" | "dead" | number | readonly string[];

type State = ReadonlySet<string>;

const without = (state: State, name: string): State => new Set([...state].filter((each) => each !== name));
const only = (state: State, name: string | undefined): State => new Set([...state].filter((each) => each === name));

/** What the verb does, and what it answers. */
function run(state: State, input: Input): { readonly after: State; readonly answer: Output } {
  if (input.verb === "list") return { after: state, answer: [...state].toSorted() };
  if (input.verb === "revokeSubject") {
    const after = only(state, input.except);
    return { after, answer: state.size - after.size };
  }
  const { verb, name } = input;
  const live = state.has(name);
  const told = live ? "live" : "dead";
  switch (verb) {
    case "create":
      return { after: new Set([...state, name]), answer: "live" };
    case "refresh":
    case "introspect":
      return { after: state, answer: told };
    case "logout":
      return { after: without(state, name), answer: told };
    case "revoke":
      return { after: without(state, name), answer: live ? 1 : 0 };
    case "revokeOthers":
      return live ? { after: only(state, name), answer: state.size - 1 } : { after: state, answer: "dead" };
  }
}

const same = (a: Output, b: Output) => JSON.stringify(a) === JSON.stringify(b);

export const subjectModel: Model<State, Input, Output> = {
  initial: new Set(),
  step(state, input, output) {
    const { after, answer } = run(state, input);
    return output === undefined || same(answer, output) ? after : undefined;
  },
  key: (state) => [...state].toSorted().join(),
};

export type SubjectOperation = Operation<Input, Output>;

/** A history as a person reads it. */
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

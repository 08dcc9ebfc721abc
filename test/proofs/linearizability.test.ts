/** The linearizability checker refuses exactly those histories that no sequential order explains. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { findFault } from "./support/linearizability.ts";
import { type Input, type Output, type State, type SubjectOperation, subjectModel } from "./support/subject-model.ts";

type Row = readonly [invokedAt: number, returnedAt: number, input: Input, output: Output | undefined];

const history = (...rows: readonly Row[]): SubjectOperation[] =>
  rows.map(([invokedAt, returnedAt, input, output]) => ({ input, output, invokedAt, returnedAt }));

const on = (verb: Exclude<Input["verb"], "list" | "revokeSubject">, name: string): Input => ({ verb, name });
const LIST: Input = { verb: "list" };
const REVOKE_ALL: Input = { verb: "revokeSubject" };
const NEVER = Number.POSITIVE_INFINITY;

describe("what no order explains is refused", () => {
  const rows: [what: string, history: SubjectOperation[]][] = [
    ["a session that was never created", history([1, 2, on("refresh", "a"), "live"])],
    [
      "a refresh after its session was revoked",
      history([1, 2, on("create", "a"), "live"], [3, 4, REVOKE_ALL, 1], [5, 6, on("refresh", "a"), "live"]),
    ],
    [
      "a session that lives again",
      history(
        [1, 2, on("create", "a"), "live"],
        [3, 9, REVOKE_ALL, 1],
        [4, 5, on("refresh", "a"), "dead"],
        [6, 7, on("refresh", "a"), "live"],
      ),
    ],
    [
      "a login that ends by a revocation before it",
      history([1, 2, REVOKE_ALL, 0], [3, 4, on("create", "a"), "live"], [5, 6, on("refresh", "a"), "dead"]),
    ],
    [
      "a session that a revocation counted as none and left alive",
      history([1, 2, on("create", "a"), "live"], [3, 4, REVOKE_ALL, 0], [5, 6, on("refresh", "a"), "live"]),
    ],
    [
      "a count that was never the number of sessions",
      history([1, 2, on("create", "a"), "live"], [3, 6, on("create", "b"), "live"], [4, 5, REVOKE_ALL, 3]),
    ],
    [
      "one session ended twice",
      history([1, 2, on("create", "a"), "live"], [3, 5, on("logout", "a"), "live"], [4, 6, on("logout", "a"), "live"]),
    ],
    [
      "one session counted by two revocations at once",
      history([1, 2, on("create", "a"), "live"], [3, 5, REVOKE_ALL, 1], [4, 6, REVOKE_ALL, 1]),
    ],
    [
      "half of what a revocation ends",
      history(
        [1, 2, on("create", "a"), "live"],
        [3, 4, on("create", "b"), "live"],
        [5, 10, REVOKE_ALL, 2],
        [6, 7, LIST, ["b"]],
        [8, 9, LIST, []],
      ),
    ],
    [
      "a list that forgets a live session",
      history([1, 2, on("create", "a"), "live"], [3, 4, LIST, []], [5, 6, on("refresh", "a"), "live"]),
    ],
    [
      "two readers that see two sessions appear in two orders",
      history(
        [1, 9, on("create", "a"), "live"],
        [1, 9, on("create", "b"), "live"],
        [2, 3, LIST, ["a"]],
        [4, 5, LIST, ["b"]],
      ),
    ],
    [
      "the spared session ended",
      history(
        [1, 2, on("create", "a"), "live"],
        [3, 4, { verb: "revokeSubject", except: "a" }, 0],
        [5, 6, on("introspect", "a"), "dead"],
      ),
    ],
    [
      "a revocation with unknown outcome that comes and goes",
      history(
        [1, 2, on("create", "a"), "live"],
        [3, NEVER, REVOKE_ALL, undefined],
        [4, 5, on("refresh", "a"), "dead"],
        [6, 7, on("refresh", "a"), "live"],
      ),
    ],
    [
      "a refresh that lacks an update before it",
      history([1, 2, on("create", "a"), "live"], [3, 4, on("update", "a"), "live"], [5, 6, on("refresh", "a"), "live"]),
    ],
    [
      "a token from before an update that is accepted after it",
      history(
        [1, 2, on("create", "a"), "live"],
        [3, 4, on("update", "a"), "live"],
        [5, 6, { verb: "introspect", name: "a", sv: 0 }, "live"],
      ),
    ],
    [
      "a token that is refused although no update followed",
      history(
        [1, 2, on("create", "a"), "live"],
        [3, 4, on("update", "a"), "live"],
        [5, 6, { verb: "introspect", name: "a", sv: 1 }, "dead"],
      ),
    ],
    [
      "an update that comes back",
      history(
        [1, 2, on("create", "a"), "live"],
        [3, 9, on("update", "a"), "live"],
        [4, 5, on("refresh", "a"), "live 1"],
        [6, 7, on("refresh", "a"), "live"],
      ),
    ],
    [
      "a logout with unknown outcome that takes effect before its request",
      history(
        [1, 2, on("create", "a"), "live"],
        [3, 4, on("refresh", "a"), "dead"],
        [5, NEVER, on("logout", "a"), undefined],
      ),
    ],
  ];
  test.each(rows)("%s", (_, wrong) => expect(findFault(wrong, subjectModel)).toBeDefined());
});

describe("what an order explains is accepted", () => {
  const rows: [what: string, history: SubjectOperation[]][] = [
    ["nothing", []],
    [
      "a login that a concurrent revocation missed",
      history([1, 4, on("create", "a"), "live"], [2, 3, REVOKE_ALL, 0], [5, 6, on("refresh", "a"), "live"]),
    ],
    [
      "a login that a concurrent revocation ended",
      history([1, 4, on("create", "a"), "live"], [2, 3, REVOKE_ALL, 1], [5, 6, on("refresh", "a"), "dead"]),
    ],
    [
      "a response that comes late",
      history(
        [1, 2, on("create", "a"), "live"],
        [3, 9, on("refresh", "a"), "live"],
        [4, 5, REVOKE_ALL, 1],
        [6, 7, on("refresh", "a"), "dead"],
      ),
    ],
    [
      "a refresh that races an update, and a token from before it that is refused",
      history(
        [1, 2, on("create", "a"), "live"],
        [3, 9, on("update", "a"), "live"],
        [4, 5, on("refresh", "a"), "live"],
        [6, 7, { verb: "introspect", name: "a", sv: 0 }, "dead"],
        [8, 9, on("refresh", "a"), "live 1"],
      ),
    ],
    [
      "a revocation with unknown outcome that took effect later",
      history(
        [1, 2, on("create", "a"), "live"],
        [3, NEVER, REVOKE_ALL, undefined],
        [4, 5, on("refresh", "a"), "live"],
        [6, 7, on("refresh", "a"), "dead"],
      ),
    ],
    [
      "a login with unknown outcome that is found in a list",
      history([1, NEVER, on("create", "a"), undefined], [2, 3, LIST, []], [4, 5, LIST, ["a"]], [6, 7, REVOKE_ALL, 1]),
    ],
  ];
  test.each(rows)("%s", (_, right) => expect(findFault(right, subjectModel)).toBeUndefined());
});

const name = fc.constantFrom("a", "b");
const anyInput: fc.Arbitrary<Input> = fc.oneof(
  fc.record({
    verb: fc.constantFrom("create", "refresh", "update", "logout", "revoke" as const),
    name,
  }),
  fc.record({ verb: fc.constantFrom("introspect", "revokeOthers" as const), name, sv: fc.constantFrom(0, 1) }),
  fc.constant(REVOKE_ALL),
  fc.record({ verb: fc.constant("revokeSubject" as const), except: name }),
  fc.constant(LIST),
);
const anyOutput = fc.constantFrom<(Output | undefined)[]>(
  "live",
  "live 1",
  "dead",
  0,
  1,
  2,
  [],
  ["a"],
  ["b"],
  undefined,
);

/** Tries every order of the operations, which is the definition of linearizability, but too slow for long histories. */
function linearizableByDefinition(operations: readonly SubjectOperation[]): boolean {
  const follow = (state: State, left: readonly SubjectOperation[]): boolean =>
    left.every((each) => each.output === undefined) ||
    left.some((first) => {
      if (left.some((other) => other.returnedAt < first.invokedAt)) return false;
      const after = subjectModel.step(state, first.input, first.output);
      return (
        after !== undefined &&
        follow(
          after,
          left.filter((other) => other !== first),
        )
      );
    });
  return follow(subjectModel.initial, operations);
}

test("on small histories of any kind it agrees with the definition", () => {
  const operation = fc.tuple(fc.nat(20), fc.nat(8), anyInput, anyOutput).map(
    ([invokedAt, takes, input, output]): SubjectOperation => ({
      input,
      output,
      invokedAt,
      returnedAt: output === undefined ? NEVER : invokedAt + takes,
    }),
  );
  const histories = { right: 0, wrong: 0 };
  fc.assert(
    fc.property(fc.array(operation, { minLength: 1, maxLength: 6 }), (operations) => {
      const right = linearizableByDefinition(operations);
      histories[right ? "right" : "wrong"]++;
      expect(findFault(operations, subjectModel) === undefined).toBe(right);
    }),
    { numRuns: 2000 },
  );
  expect(Math.min(histories.right, histories.wrong)).toBeGreaterThan(20);
});

/** How many operations a long history has at most, and so how often a session is updated at most. */
const LONG = 60;
const VERSIONS = Array.from({ length: LONG }, (_, at): Output => `live ${at + 1}`);

/** A history that is linearizable, because each operation takes effect at a moment between its invocation and its return. */
const rightHistory = fc
  .array(
    fc.tuple(
      anyInput,
      fc.double({ min: 0, max: 3, noNaN: true }),
      fc.double({ min: 0, max: 3, noNaN: true }),
      fc.nat(9),
    ),
    {
      minLength: 5,
      maxLength: LONG,
    },
  )
  .map((steps) => {
    let state = subjectModel.initial;
    return steps.map(([input, before, after, luck], moment): SubjectOperation => {
      const outputs: Output[] = ["live", "dead", 0, 1, 2, [], ["a"], ["b"], ["a", "b"], ...VERSIONS];
      const output = outputs.find((each) => subjectModel.step(state, input, each) !== undefined);
      if (output === undefined) throw new Error(`no output of ${JSON.stringify(input)} is known`);
      state = subjectModel.step(state, input, output) ?? state;
      const lost = luck === 0;
      return {
        input,
        output: lost ? undefined : output,
        invokedAt: moment - before,
        returnedAt: lost ? NEVER : moment + after,
      };
    });
  });

test("long linearizable histories are accepted, however their operations overlap", () => {
  fc.assert(
    fc.property(rightHistory, (operations) => {
      expect(findFault(operations, subjectModel)).toBeUndefined();
    }),
    { numRuns: 300 },
  );
});

test("a session that outlives a revocation of all is found at the end of any of them", () => {
  fc.assert(
    fc.property(rightHistory, (operations) => {
      const end = operations.length + 10;
      const wrong = [
        ...operations,
        ...history([end, end + 1, REVOKE_ALL, 0], [end + 2, end + 3, on("refresh", "a"), "live"]),
      ];
      // Histories with a login without a response are left out. Such a login may take effect after the revocation, so the live session at
      // the end would be correct.
      const lost = operations.some(({ input, output }) => output === undefined && input.verb === "create");
      fc.pre(!lost);
      expect(findFault(wrong, subjectModel)).toBeDefined();
    }),
    { numRuns: 300 },
  );
});

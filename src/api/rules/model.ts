/** The rules of requests as `gen/` has them: plain data, made from `buf.validate` options by src/protoc-gen-rules. */
import type { ArgumentOf, RuleId } from "./checks.ts";

/** The rules of a message and of those inside of it, by their full names. */
export type Rules = Readonly<Record<string, MessageRules>>;

export type MessageRules = {
  /** In the order of declaration: those with rules, and those whose message has rules. */
  readonly fields: readonly FieldRules[];
  readonly groups: readonly ExclusiveGroup[];
};

export type FieldRules = {
  /** The name in TypeScript. */
  readonly field: string;
  readonly required?: true;
  /** Whether the checks are left out while the field is not set. */
  readonly ifSet?: true;
  readonly checks?: readonly RuleCheck[];
  /** Checks of each item of a list. */
  readonly items?: readonly RuleCheck[];
};

/** Fields by their names in TypeScript, of which at most one may be set. */
export type ExclusiveGroup = {
  readonly fields: readonly string[];
  /** Whether one has to be set. */
  readonly required?: true;
};

/** The id of a rule and its argument. */
export type RuleCheck = { [Id in RuleId]: readonly [Id, ArgumentOf<Id>] }[RuleId];

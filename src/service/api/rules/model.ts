/** The rules of requests in `gen/`: plain data, made from `buf.validate` options by src/service/protoc-gen-rules. */
import type { ArgumentOf, RuleId } from "./checks.ts";

/** The rules of a message and of the messages inside it, by their full names. */
export type Rules = Readonly<Record<string, MessageRules>>;

export type MessageRules = {
  /** The fields with rules, and the fields whose message has rules, in the order of declaration. */
  readonly fields: readonly FieldRules[];
  readonly groups: readonly ExclusiveGroup[];
};

export type FieldRules = {
  /** The name of the field in TypeScript. */
  readonly field: string;
  readonly required?: true;
  /** Whether the checks are skipped if the field is not set. */
  readonly ifSet?: true;
  readonly checks?: readonly RuleCheck[];
  /** The checks of each item, if the field is a list. */
  readonly items?: readonly RuleCheck[];
};

/** The names in TypeScript of fields of which at most one may be set. */
export type ExclusiveGroup = {
  readonly fields: readonly string[];
  /** Whether one of the fields must be set. */
  readonly required?: true;
};

export type RuleCheck = { [Id in RuleId]: readonly [Id, ArgumentOf<Id>] }[RuleId];

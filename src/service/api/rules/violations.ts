/** Finds the violations of a request's rules (model.ts): those that protovalidate reports, in its order. */
import {
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescService,
  isFieldSet,
  type Message,
} from "@bufbuild/protobuf";
import type { FieldViolation } from "../../session/errors.ts";
import { CHECKS } from "./checks.ts";
import type { ExclusiveGroup, FieldRules, MessageRules, RuleCheck, Rules } from "./model.ts";

/** Adds the violations of a message to `found`. @param path of the message in the request */
type Examine = (message: Message, path: string, found: FieldViolation[]) => void;

type Check = {
  readonly ruleId: string;
  readonly description: string;
  readonly holds: (value: unknown) => boolean;
};

type ViolationsOf = (request: Message) => readonly FieldViolation[];

/**
 * @param most how many violations of one request are reported at most
 * @returns for each method whose requests have rules, the function that finds violations
 */
export function prepareRules(rules: Rules, service: DescService, most: number): ReadonlyMap<DescMethod, ViolationsOf> {
  const prepared = new Map<DescMessage, Examine>();
  const prepare = (type: DescMessage): Examine | undefined => {
    const own = rules[type.typeName];
    if (own === undefined || prepared.has(type)) return prepared.get(type);
    const examine = examineMessage(type, own, prepared, most);
    prepared.set(type, examine);
    for (const { message } of type.fields) if (message !== undefined) prepare(message);
    return examine;
  };
  const byMethod = new Map<DescMethod, ViolationsOf>();
  for (const method of service.methods) {
    const examine = prepare(method.input);
    if (examine === undefined) continue;
    byMethod.set(method, (request) => {
      const found: FieldViolation[] = [];
      examine(request, "", found);
      return found.slice(0, most);
    });
  }
  return byMethod;
}

function examineMessage(
  type: DescMessage,
  { fields, groups }: MessageRules,
  prepared: ReadonlyMap<DescMessage, Examine>,
  most: number,
): Examine {
  const examineFields = fields.map((rules) => examineField(fieldOf(type, rules.field), rules, prepared, most));
  const examineGroups = groups.map((group) => examineGroup(type, group));
  return (message, path, found) => {
    for (const examine of examineFields) examine(message, path, found);
    for (const examine of examineGroups) examine(message, path, found);
  };
}

function examineField(
  field: DescField,
  rules: FieldRules,
  prepared: ReadonlyMap<DescMessage, Examine>,
  most: number,
): Examine {
  const { required = false, ifSet = false } = rules;
  const examineValue = examineWith(rules.checks);
  const examineItem = examineWith(rules.items);
  const { message: nested } = field;
  return (message, path, found) => {
    const at = path === "" ? field.name : `${path}.${field.name}`;
    if ((required || ifSet) && !isFieldSet(message, field)) {
      if (required) found.push({ field: at, description: "value is required", ruleId: "required" });
      return;
    }
    const value = (message as unknown as Record<string, unknown>)[field.localName];
    const examineNested = nested && prepared.get(nested);
    examineValue(value, at, found);
    if (field.fieldKind === "message") examineNested?.(value as Message, at, found);
    if (field.fieldKind !== "list" || (rules.items === undefined && examineNested === undefined)) return;
    for (const [index, item] of (value as readonly unknown[]).entries()) {
      if (found.length >= most) return;
      examineItem(item, `${at}[${index}]`, found);
      examineNested?.(item as Message, `${at}[${index}]`, found);
    }
  };
}

function examineWith(listed: readonly RuleCheck[] = []) {
  const checks = listed.map(([ruleId, argument]): Check => {
    // The cast is safe, although the compiler cannot see it: the type `RuleCheck` pairs each rule with an argument of the right type.
    const create = CHECKS[ruleId] as (argument: unknown) => Omit<Check, "ruleId">;
    return { ruleId, ...create(argument) };
  });
  return (value: unknown, at: string, found: FieldViolation[]): void => {
    for (const { ruleId, description, holds } of checks) {
      if (!holds(value)) found.push({ field: at, description, ruleId });
    }
  };
}

function examineGroup(type: DescMessage, { fields, required }: ExclusiveGroup): Examine {
  const members = fields.map((name) => fieldOf(type, name));
  const names = members.map(({ name }) => name).join(", ");
  const ruleId = "message.oneof";
  return (message, path, found) => {
    const count = members.filter((member) => isFieldSet(message, member)).length;
    if (count > 1) found.push({ field: path, description: `only one of ${names} can be set`, ruleId });
    if (required && count === 0) found.push({ field: path, description: `one of ${names} must be set`, ruleId });
  };
}

function fieldOf(type: DescMessage, name: string): DescField {
  const field = type.field[name];
  if (field === undefined) throw new Error(`${type.typeName} has no field ${name}`);
  return field;
}

/** Finds the violations of a request's rules, which are its `buf.validate` options: those that protovalidate reports, in its order. */
import { type DescField, type DescMessage, getOption, hasOption, isFieldSet, type Message } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import {
  field as fieldRules,
  Ignore,
  type MessageOneofRule,
  message as messageRules,
  oneof as oneofRules,
} from "../../../../gen/buf/validate/validate_pb.ts";
import type { FieldViolation } from "../../session/errors.ts";
import { type Check, checksOfItems, checksOfValue, requireKnown } from "./checks.ts";

/** Adds the violations of a message to `found`. @param path of the message in the request */
type Examine = (message: Message, path: string, found: FieldViolation[]) => void;

/** The functions of the messages in a request. They look each other up at each call, because messages may contain each other. */
type Prepared = Map<DescMessage, Examine>;

/** Whether a message, or a message inside it, has rules. */
export function hasRules(type: DescMessage, seen = new Set<DescMessage>()): boolean {
  if (seen.has(type)) return false;
  seen.add(type);
  return (
    hasOption(type, messageRules) ||
    type.oneofs.some((oneof) => hasOption(oneof, oneofRules)) ||
    type.fields.some((field) => hasOption(field, fieldRules) || (field.message && hasRules(field.message, seen)))
  );
}

/**
 * The rules are prepared at the first request, so that the start does not wait for them.
 *
 * @param most how many violations of one request are reported at most
 * @returns the function that finds the violations of requests. It throws an Error for a rule that is not supported, in the request or in a
 * message inside it
 */
export function prepareRules(type: DescMessage, most: number): (request: Message) => readonly FieldViolation[] {
  let prepared: Prepared | undefined;
  return (request) => {
    prepared ??= prepareMessage(type, new Map(), most);
    const found: FieldViolation[] = [];
    prepared.get(type)?.(request, "", found);
    return found.slice(0, most);
  };
}

function prepareMessage(type: DescMessage, prepared: Prepared, most: number): Prepared {
  if (prepared.has(type) || !hasRules(type)) return prepared;
  const groups = naming(type.typeName, () => groupsOf(type));
  const grouped = groups.flatMap(({ members }) => members);
  const fields = type.fields.filter(
    (field) => hasOption(field, fieldRules) || (field.message && hasRules(field.message)),
  );
  const steps = [
    ...fields.map((field) => naming(String(field), () => examineField(field, grouped.includes(field), prepared, most))),
    ...groups.map(examineGroup),
  ];
  prepared.set(type, (message, path, found) => {
    for (const examine of steps) examine(message, path, found);
  });
  for (const { message } of fields) if (message !== undefined) prepareMessage(message, prepared, most);
  return prepared;
}

/** Names in an error the place where the rule is declared. */
function naming<T>(place: string, step: () => T): T {
  try {
    return step();
  } catch (error) {
    throw new Error(`${place}: ${(error as Error).message}`);
  }
}

/** @throws Error for a rule that is not supported */
function examineField(field: DescField, isGrouped: boolean, prepared: Prepared, most: number): Examine {
  const rules = getOption(field, fieldRules);
  requireKnown(rules);
  if (rules.ignore !== Ignore.UNSPECIFIED) throw new Error("`ignore` is not supported");
  if (field.oneof !== undefined) throw new Error("rules inside a oneof are not supported");
  if (field.fieldKind === "map") throw new Error("rules inside a map are not supported");
  const { required } = rules;
  const hasPresence = field.fieldKind !== "list" && field.presence !== FeatureSet_FieldPresence.IMPLICIT;
  const checks = checksOfValue(field, rules);
  const itemChecks = checksOfItems(field, rules);
  return (message, path, found) => {
    const at = path === "" ? field.name : `${path}.${field.name}`;
    if ((required || hasPresence || isGrouped) && !isFieldSet(message, field)) {
      if (required) found.push({ field: at, description: "value is required", ruleId: "required" });
      return;
    }
    const value = (message as unknown as Record<string, unknown>)[field.localName];
    const examineNested = field.message && prepared.get(field.message);
    examineValue(checks, value, at, found);
    if (field.fieldKind === "message") examineNested?.(value as Message, at, found);
    if (field.fieldKind !== "list" || (itemChecks.length === 0 && examineNested === undefined)) return;
    for (const [index, item] of (value as readonly unknown[]).entries()) {
      if (found.length >= most) return;
      examineValue(itemChecks, item, `${at}[${index}]`, found);
      examineNested?.(item as Message, `${at}[${index}]`, found);
    }
  };
}

function examineValue(checks: readonly Check[], value: unknown, at: string, found: FieldViolation[]): void {
  for (const { ruleId, description, holds } of checks) {
    if (!holds(value)) found.push({ field: at, description, ruleId });
  }
}

/** Fields of which at most one may be set, or exactly one. */
type Group = Pick<MessageOneofRule, "required"> & { readonly members: readonly DescField[] };

/** @throws Error for a rule that is not supported */
function groupsOf(type: DescMessage): Group[] {
  if (type.oneofs.some((oneof) => hasOption(oneof, oneofRules))) throw new Error("rules of a oneof are not supported");
  const rules = getOption(type, messageRules);
  requireKnown(rules);
  return rules.oneof.map((group) => {
    requireKnown(group);
    const members = group.fields.map((name) => {
      const field = type.fields.find((one) => one.name === name);
      if (field === undefined) throw new Error(`the group names ${name}, which is no field`);
      return field;
    });
    if (members.length === 0 || new Set(members).size < members.length)
      throw new Error("a group needs different fields");
    return { members, required: group.required };
  });
}

function examineGroup({ members, required }: Group): Examine {
  const names = members.map(({ name }) => name).join(", ");
  const ruleId = "message.oneof";
  return (message, path, found) => {
    const count = members.filter((member) => isFieldSet(message, member)).length;
    if (count > 1) found.push({ field: path, description: `only one of ${names} can be set`, ruleId });
    if (required && count === 0) found.push({ field: path, description: `one of ${names} must be set`, ruleId });
  };
}

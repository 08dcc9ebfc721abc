import { type DescField, type DescMessage, type DescService, getOption, hasOption } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import {
  Ignore,
  message as messageOption,
  oneof as oneofOption,
  field as rulesOption,
} from "../../../gen/buf/validate/validate_pb.ts";
import type { ExclusiveGroup, FieldRules, MessageRules } from "../api/rules/model.ts";
import { describeItems, describeValue, refuseUnknown } from "./checks.ts";

/** Describes the rules of all requests of a service. @param faults receives the rules that cannot be expressed, one per line */
export function describeRules(service: DescService, faults: string[]): Record<string, MessageRules> {
  const described: Record<string, MessageRules> = {};
  const describe = (type: DescMessage): void => {
    if (described[type.typeName] !== undefined || !hasRules(type)) return;
    const attempt = <T>(place: string, step: () => T): T | undefined => {
      try {
        return step();
      } catch (error) {
        faults.push(`${place}: ${(error as Error).message}`);
        return undefined;
      }
    };
    const groups = attempt(type.typeName, () => describeGroups(type)) ?? [];
    const grouped = new Set(groups.flatMap(({ fields }) => fields));
    const fields = type.fields.filter(isConcerned);
    described[type.typeName] = {
      fields: fields
        .map((field) => attempt(String(field), () => describeField(field, grouped.has(field.localName))))
        .filter((rules) => rules !== undefined),
      groups,
    };
    for (const { message } of fields) if (message !== undefined) describe(message);
  };
  for (const { input } of service.methods) describe(input);
  return described;
}

/** Whether a message, or a message inside it, has rules. */
function hasRules(type: DescMessage, seen = new Set<DescMessage>()): boolean {
  if (seen.has(type)) return false;
  seen.add(type);
  return (
    hasOption(type, messageOption) ||
    type.oneofs.some((oneof) => hasOption(oneof, oneofOption)) ||
    type.fields.some((field) => hasOption(field, rulesOption) || (field.message && hasRules(field.message, seen)))
  );
}

/** Whether a field, or the message that it holds, has rules. */
const isConcerned = (field: DescField): boolean =>
  hasOption(field, rulesOption) || (field.message !== undefined && hasRules(field.message));

/** @throws Error for a rule that cannot be expressed */
function describeGroups(type: DescMessage): ExclusiveGroup[] {
  if (type.oneofs.some((oneof) => hasOption(oneof, oneofOption))) throw new Error("rules of a oneof are not supported");
  const option = getOption(type, messageOption);
  refuseUnknown(option);
  return option.oneof.map((group) => {
    refuseUnknown(group);
    const fields = group.fields.map((name) => {
      const field = type.fields.find((one) => one.name === name);
      if (field === undefined) throw new Error(`the group names ${name}, which is no field`);
      return field.localName;
    });
    if (fields.length === 0 || new Set(fields).size < fields.length) throw new Error("a group needs different fields");
    return { fields, ...(group.required && { required: true }) };
  });
}

/** @throws Error for a rule that cannot be expressed */
function describeField(field: DescField, isGrouped: boolean): FieldRules {
  const option = getOption(field, rulesOption);
  refuseUnknown(option);
  if (option.ignore !== Ignore.UNSPECIFIED) throw new Error("`ignore` is not supported");
  if (field.oneof !== undefined) throw new Error("rules inside a oneof are not supported");
  if (field.fieldKind === "map") throw new Error("rules inside a map are not supported");
  const isSingle = field.fieldKind !== "list";
  const hasPresence = isSingle && field.presence !== FeatureSet_FieldPresence.IMPLICIT;
  const checks = describeValue(field, option);
  const items = describeItems(field, option);
  return {
    field: field.localName,
    ...(option.required && { required: true }),
    ...((hasPresence || isGrouped) && { ifSet: true }),
    ...(checks.length > 0 && { checks }),
    ...(items.length > 0 && { items }),
  };
}

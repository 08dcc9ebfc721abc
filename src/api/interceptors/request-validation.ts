/** Checks requests against the rules of the contract (`buf.validate` in proto/), for both APIs. */
import {
  create,
  type DescMessage,
  type DescMethod,
  type DescService,
  hasOption,
  type Message,
} from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { createValidator } from "@bufbuild/protovalidate";
import type { Interceptor } from "@connectrpc/connect";
import { field as fieldRules, message as messageRules } from "../../../gen/buf/validate/validate_pb.ts";
import { invalidFields } from "../../session/errors.ts";

/** Violations that are reported of one request. */
const MAX_VIOLATIONS = 20;

/** The patterns of the contract, compiled: constants, without nested repetition, so they need no RE2. */
const patterns = new Map<string, RegExp>();

function matchesPattern(pattern: string, text: string): boolean {
  let compiled = patterns.get(pattern);
  if (compiled === undefined) {
    compiled = new RegExp(pattern, "u");
    patterns.set(pattern, compiled);
  }
  return compiled.test(text);
}

const validator = createValidator({ regexMatch: matchesPattern });

/**
 * Rejects requests that break a rule of their message with `E400_INVALID_REQUEST` and all violations (at most 20). Methods
 * whose request has no rules, such as Refresh, cost one lookup. Rules are compiled here, not by the first request.
 */
export function requestValidation(service: DescService): Interceptor {
  const checked = new Set<DescMethod>(service.methods.filter(({ input }) => hasRules(input)));
  for (const { input } of checked) validator.validate(input, create(input));
  return (next) => (request) => {
    if (!checked.has(request.method)) return next(request);
    if (request.stream) return next({ ...request, message: validated(request.method.input, request.message) });
    validate(request.method.input, request.message);
    return next(request);
  };
}

async function* validated(type: DescMessage, messages: AsyncIterable<Message>) {
  for await (const message of messages) {
    validate(type, message);
    yield message;
  }
}

/** @throws ServiceError */
function validate(type: DescMessage, message: Message): void {
  const result = validator.validate(type, message);
  if (result.kind === "valid") return;
  if (result.kind === "error") throw result.error;
  throw invalidFields(
    result.violations.slice(0, MAX_VIOLATIONS).map(({ field, message: description, ruleId }) => ({
      field: pathToString(field),
      description,
      ruleId,
    })),
  );
}

/** Whether a message, or one inside of it, has rules. */
function hasRules(type: DescMessage, seen = new Set<DescMessage>()): boolean {
  if (seen.has(type)) return false;
  seen.add(type);
  return (
    hasOption(type, messageRules) ||
    type.fields.some((field) => hasOption(field, fieldRules) || (field.message && hasRules(field.message, seen)))
  );
}

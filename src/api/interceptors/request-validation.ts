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
import type { Validator } from "@bufbuild/protovalidate";
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

let validator: Validator | undefined;
let loading: Promise<Validator> | undefined;

/** Loading it takes a fifth of a start, so it is loaded when it is first needed, or by `prepareValidation`. */
function loadValidator(): Promise<Validator> {
  loading ??= import("@bufbuild/protovalidate").then(({ createValidator }) => {
    validator = createValidator({ regexMatch: matchesPattern });
    return validator;
  });
  return loading;
}

/**
 * Compiles the rules of services ahead of their first requests, a message in a turn of the event loop. A request that comes
 * before waits for those of its own message.
 */
export async function prepareValidation(services: readonly DescService[]): Promise<void> {
  const { validate: compile } = await loadValidator();
  for (const { input } of services.flatMap(({ methods }) => methods)) {
    if (!hasRules(input)) continue;
    await new Promise(setImmediate);
    compile(input, create(input));
  }
}

/**
 * Rejects requests that break a rule of their message with `E400_INVALID_REQUEST` and all violations (at most 20). Methods
 * whose request has no rules, such as Refresh, cost one lookup.
 */
export function requestValidation(service: DescService): Interceptor {
  const checked = new Set<DescMethod>(service.methods.filter(({ input }) => hasRules(input)));
  return (next) => (request) => {
    if (!checked.has(request.method)) return next(request);
    if (request.stream) return next({ ...request, message: validated(request.method.input, request.message) });
    const { input } = request.method;
    if (validator === undefined) {
      return loadValidator().then((loaded) => {
        validate(loaded, input, request.message);
        return next(request);
      });
    }
    validate(validator, input, request.message);
    return next(request);
  };
}

async function* validated(type: DescMessage, messages: AsyncIterable<Message>) {
  const loaded = await loadValidator();
  for await (const message of messages) {
    validate(loaded, type, message);
    yield message;
  }
}

/** @throws ServiceError */
function validate(loaded: Validator, type: DescMessage, message: Message): void {
  const result = loaded.validate(type, message);
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

/** Checks requests against the rules of the contract (`buf.validate` in proto/, prepared in gen/), for both APIs. */
import type { DescService, Message } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { type FieldViolation, invalidFields } from "../../session/errors.ts";
import type { Rules } from "../rules/model.ts";
import { prepareRules, type ViolationsOf } from "../rules/violations.ts";

/** How many violations of one request are reported. */
const MAX_VIOLATIONS = 20;

export type ValidatedService = { readonly service: DescService; readonly rules: Rules };

/** Rejects requests that break a rule of their message with `E400_INVALID_REQUEST` and at most 20 violations. */
export function requestValidation(services: readonly ValidatedService[]): Interceptor {
  const checked = new Map(services.flatMap(({ service, rules }) => [...prepareRules(rules, service, MAX_VIOLATIONS)]));
  return (next) => (request) => {
    const violationsOf = checked.get(request.method);
    if (violationsOf === undefined) return next(request);
    if (request.stream) return next({ ...request, message: validated(violationsOf, request.message) });
    refuseInvalid(violationsOf(request.message));
    return next(request);
  };
}

async function* validated(violationsOf: ViolationsOf, messages: AsyncIterable<Message>) {
  for await (const message of messages) {
    refuseInvalid(violationsOf(message));
    yield message;
  }
}

/** @throws ServiceError if there are violations */
function refuseInvalid(violations: readonly FieldViolation[]): void {
  if (violations.length > 0) throw invalidFields(violations);
}

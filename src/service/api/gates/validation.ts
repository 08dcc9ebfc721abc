/** Checks requests against the rules of the contract (`buf.validate` in proto/), for both APIs. */
import type { DescService, Message } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { invalidFields } from "../../session/errors.ts";
import { hasRules, prepareRules } from "../rules/violations.ts";

const MAX_VIOLATIONS = 20;

type Implementation = (request: Message, context: HandlerContext) => unknown;

/**
 * Returns handlers that reject requests that break a rule of their message, with `E400_INVALID_REQUEST` and at most 20 violations. RPCs
 * without rules keep their own handlers.
 */
export function validated<Service extends DescService>(
  service: Service,
  handlers: Partial<ServiceImpl<Service>>,
): ServiceImpl<Service> {
  const checked = { ...handlers } as Record<string, Implementation | undefined>;
  for (const { input, localName } of service.methods) {
    const handler = checked[localName];
    if (handler === undefined || !hasRules(input)) continue;
    const violationsOf = prepareRules(input, MAX_VIOLATIONS);
    checked[localName] = (request, context) => {
      const violations = violationsOf(request);
      if (violations.length > 0) throw invalidFields(violations);
      return handler(request, context);
    };
  }
  return checked as ServiceImpl<Service>;
}

import { type HttpRequest, type Responder, respond } from "../../platform/listener/handler.ts";
import { errorBodyOf, isOAuthPath } from "../api/errors/oauth-errors.ts";
import type { PlainResponse } from "../api/errors/refused-calls.ts";
import { ERRORS, type ErrorCode } from "../session/errors.ts";

/** Responds with an error in the form of OAuth below its paths, and as `otherwise` elsewhere; by default with the body of JSON routes. */
export function errorResponder(code: ErrorCode, otherwise?: PlainResponse): Responder {
  return (request, response) => {
    const { url = "" } = request as HttpRequest;
    if (otherwise !== undefined && !isOAuthPath(url))
      return respond(response, otherwise.status, otherwise.headers, otherwise.body);
    const body = Buffer.from(errorBodyOf(url, code));
    const headers = { "content-type": "application/json", "content-length": body.length };
    respond(response, ERRORS[code].http, headers, body);
  };
}

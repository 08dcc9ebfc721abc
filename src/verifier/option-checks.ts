/** Checks the options of a verifier, so that a variable that is not set is reported at the start instead of refusing every token. */

/** @throws TypeError for an option that is missing or of the wrong type */
export function checkOptions(options: { readonly [name: string]: unknown }): void {
  if (typeof options !== "object" || options === null) throw new TypeError("createVerifier needs options");
  const { issuer, audience, adminUrl, jwksUrl, adminToken, policy, revocations, report } = options;
  requireText("issuer", issuer);
  const audiences: readonly unknown[] = [audience].flat();
  if (audiences.length === 0) throw fault("audience", audience, "a text, or a list of texts");
  for (const each of audiences) requireText("audience", each);
  if (adminUrl === undefined && jwksUrl === undefined) throw new TypeError("createVerifier needs adminUrl or jwksUrl");
  checkUrl("adminUrl", adminUrl);
  checkUrl("jwksUrl", jwksUrl);
  const hasToken = adminToken === undefined || typeof adminToken === "function";
  if (!hasToken) requireText("adminToken", adminToken);
  if (policy !== undefined && policy !== "introspect" && policy !== "refuse")
    throw fault("policy", policy, "one of introspect, refuse");
  // Without this check, a verifier that lived on status lists would accept the tokens of ended sessions.
  if (revocations !== undefined) {
    throw new TypeError("createVerifier: revocations was removed: sessions that end are learned from adminUrl");
  }
  if (report !== undefined && typeof report !== "function") throw fault("report", report, "a function");
}

function requireText(name: string, value: unknown): void {
  if (typeof value !== "string" || value.trim() === "") throw fault(name, value, "a text that is not empty");
}

function checkUrl(name: string, value: unknown): void {
  const isUrl = typeof value === "string" && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol);
  if (value !== undefined && !isUrl) throw fault(name, value, "an http:// or https:// URL");
}

/** The value is not in the message, because it may be a secret in the wrong place. */
function fault(name: string, value: unknown, wanted: string): TypeError {
  const given = value === "" ? "empty" : value === null || value === undefined ? String(value) : `a ${typeof value}`;
  return new TypeError(`createVerifier: ${name} must be ${wanted}, and is ${given}`);
}

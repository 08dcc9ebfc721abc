import { generateKeyPairSync } from "node:crypto";

/** Makes a private RSA key in PEM. */
export function pemOf(type: "pkcs1" | "pkcs8", modulusLength = 2048, publicExponent = 65_537): string {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength, publicExponent });
  return privateKey.export({ type, format: "pem" }).toString();
}

import { generateKeyPairSync } from "node:crypto";

/** Makes a private RSA key in PEM. */
export function pemOf(type: "pkcs1" | "pkcs8", modulusLength = 2048): string {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength });
  return privateKey.export({ type, format: "pem" }).toString();
}

import { expect, test } from "vitest";
import { alternativeNames } from "../../../src/platform/listener/client-certificate.ts";

test.each([
  [undefined, []],
  ["", []],
  ["DNS:a.example", ["a.example"]],
  ["DNS:a.example, URI:spiffe://b/c, IP Address:127.0.0.1, email:x@y", ["a.example", "spiffe://b/c"]],
  ['URI:"spiffe://b, DNS:admin", DNS:a', ["spiffe://b, DNS:admin", "a"]],
  ['URI:"spiffe://b, DNS:admin, x\\"y"', ['spiffe://b, DNS:admin, x"y']],
  ['URI:"spiffe://b, DNS:admin', []],
  ["DNS:a, nonsense", []],
])("the names in %j are %j", (text, names) => {
  expect(alternativeNames(text)).toEqual(names);
});

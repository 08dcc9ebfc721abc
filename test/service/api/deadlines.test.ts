import { expect, test } from "vitest";
import { dropFarDeadline } from "../../../src/service/api/deadlines.ts";

test.each([
  ["grpc-timeout", "99999999H", false],
  ["grpc-timeout", "597H", false],
  ["grpc-timeout", "596H", true],
  ["grpc-timeout", "99999999m", true],
  ["grpc-timeout", "no timeout", true],
  ["connect-timeout-ms", "2147483648", false],
  ["connect-timeout-ms", "2147483647", true],
])("%s: %s reaches the library: %s", (name, value, kept) => {
  const headers = { [name]: value, te: "trailers" };
  dropFarDeadline({ headers });
  expect(headers).toEqual({ te: "trailers", ...(kept && { [name]: value }) });
});

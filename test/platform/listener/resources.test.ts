import { expect, test, vi } from "vitest";
import { resources } from "../../../src/platform/listener/resources.ts";

test("a limit of memory that Node does not know is none", () => {
  const limit = vi.spyOn(process, "constrainedMemory");
  limit.mockReturnValue(0);
  expect(resources().memory).toBe(Number.POSITIVE_INFINITY);
  limit.mockReturnValue(5_000_000);
  expect(resources().memory).toBe(5_000_000);
  limit.mockRestore();
});

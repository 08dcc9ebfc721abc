import type { DescMethod } from "@bufbuild/protobuf";
import type { Failure } from "./failure.ts";

/** Describes a response to the `onResponse` hook. */
export interface ResponseInfo<Source> {
  readonly request: Source;
  readonly method: string;
  readonly status: number;
  /** The RPC of the matched route; undefined if none matched. */
  readonly rpc: DescMethod | undefined;
  /** Why the request failed; undefined if it succeeded. */
  readonly failure: Failure | undefined;
}

import type { SessionId } from "./model.ts";
import type { AccessToken } from "./ports.ts";

/** The tokens that a client receives, and for how long it keeps them. */
export type IssuedTokens = {
  readonly sid: SessionId;
  readonly accessToken: AccessToken;
  readonly refreshToken: string;
  /** The seconds until the refresh token expires. */
  readonly secondsLeft: number;
  /** Whether the cookies of a browser outlive its windows. If not, they have no `Max-Age`. */
  readonly isPersistent: boolean;
};

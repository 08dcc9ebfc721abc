/** The kinds of subscriptions, by the names that the command line has for them. */
export const KIND_NAMES = ["webhook", "backchannel", "ssf_push"] as const;

export type KindName = (typeof KIND_NAMES)[number];

/** The kinds of subscriptions, by their names on the command line. */
export const KIND_NAMES = ["webhook", "backchannel", "ssf_push"] as const;

export type KindName = (typeof KIND_NAMES)[number];

/** The page that lets applications read responses, and the page that is theirs. */
export const ORIGIN = "https://app.example";
export const OWN_PAGE = "own page";

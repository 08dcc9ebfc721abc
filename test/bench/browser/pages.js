/** Defines the functions `signIn` and `ask` in the page. Each implementation uses one library as its documentation shows. */
const { library } = globalThis;
const code = await import(`/bundle/${library}`);

const kit = () => {
  const session = code.createSession();
  session.subscribe(() => {});
  return {
    signIn: async () => {
      await fetch("/kit-login");
      await session.begin();
    },
    token: () => session.accessToken(),
    isSignedOut: (error) => error.reason === "ended",
  };
};

const auth0 = async () => {
  const client = await code.createAuth0Client({
    domain: location.origin,
    clientId: "client",
    useRefreshTokens: true,
    cacheLocation: "localstorage",
    authorizationParams: { redirect_uri: `${location.origin}/auth0` },
  });
  if (location.search.includes("code=")) {
    await client.handleRedirectCallback();
    history.replaceState({}, "", "/auth0");
  }
  return {
    signIn: () => client.loginWithRedirect(),
    token: () => client.getTokenSilently(),
    isSignedOut: (error) => ["login_required", "invalid_grant", "missing_refresh_token"].includes(error.error),
  };
};

const supabase = () => {
  const client = new code.GoTrueClient({ url: `${location.origin}/supabase`, storageKey: "session" });
  const none = new Error("no session");
  return {
    signIn: () => client.signInWithPassword({ email: "a@example.com", password: "p" }),
    token: async () => {
      const { data, error } = await client.getSession();
      if (error) throw error;
      if (!data.session) throw none;
      return data.session.access_token;
    },
    isSignedOut: (error) => error === none,
  };
};

const { signIn, token, isSignedOut } = await { kit, auth0, supabase }[library]();

globalThis.signIn = signIn;
/** Returns `token`, `signed out` or `unavailable`. */
globalThis.ask = () =>
  token().then(
    (text) => (text ? "token" : "signed out"),
    (error) => (isSignedOut(error) ? "signed out" : "unavailable"),
  );
globalThis.ready = true;

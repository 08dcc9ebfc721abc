// Package verifier verifies the access tokens of the session service locally, and learns of every logout within
// milliseconds of its acknowledgement.
//
//	v, err := verifier.New(verifier.Options{
//		AdminURL:   "http://127.0.0.1:8081", // the admin API: keys, revocation feed and introspection
//		AdminToken: func() string { return os.Getenv("SESSION_ADMIN_TOKEN") },
//		Issuer:     "https://sessions.example",
//		Audience:   []string{"https://api.example"},
//	})
//	if err != nil {
//		log.Fatal(err) // the options cannot work
//	}
//	defer v.Close()
//	if err := v.Ready(ctx); err != nil { // keys and current revocations are known
//		log.Fatal(err)
//	}
//	http.ListenAndServe(":8080", v.Middleware(handler))
//
// docs/reference/verifier-protocol.md has the rules that it follows, which are those of the verifiers in other languages.
package verifier

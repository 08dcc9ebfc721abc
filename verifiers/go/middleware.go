package verifier

import (
	"context"
	"net/http"
	"regexp"
	"strings"
)

type claimsKey struct{}

// CallerClaims returns the claims of a request that the middleware has let through; nil for any other.
func CallerClaims(ctx context.Context) *Claims {
	claims, _ := ctx.Value(claimsKey{}).(*Claims)
	return claims
}

// WithClaims returns a context from which CallerClaims returns the claims: for adapters of other frameworks.
func WithClaims(ctx context.Context, claims *Claims) context.Context {
	return context.WithValue(ctx, claimsKey{}, claims)
}

// AdapterOptions are the options of the middleware and the interceptors.
type AdapterOptions struct {
	// Origin is the origin at which clients reach this service, such as https://api.example.com. If it is empty, bound
	// tokens (DPoP) are refused. If it is no origin, for example because it has a path, the adapters panic.
	Origin string
}

// NormalOrigin returns Origin as it is in URLs: in lower case, without a default port and without a slash at its end. It is
// empty if Origin is. It is for adapters of other frameworks, and panics if Origin is no origin.
func (o AdapterOptions) NormalOrigin() string {
	if o.Origin == "" {
		return ""
	}
	url, isURL := proofURL(o.Origin)
	// A normal URL has three slashes if its path is the root.
	if !isURL || strings.Count(url, "/") != 3 || !strings.HasSuffix(url, "/") || strings.ContainsAny(o.Origin, "?#") {
		panic("verifier: Origin must be one such as https://api.example.com, without a path")
	}
	return strings.TrimSuffix(url, "/")
}

// Middleware requires a valid access token for every request. Bound tokens are refused: BoundMiddleware accepts them.
func (v *Verifier) Middleware(next http.Handler) http.Handler {
	return v.BoundMiddleware(AdapterOptions{})(next)
}

// BoundMiddleware returns a middleware that also accepts bound tokens with their proofs, for the Origin of its options.
func (v *Verifier) BoundMiddleware(options AdapterOptions) func(http.Handler) http.Handler {
	origin := options.NormalOrigin()
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			caller := v.authorizeAt(r, origin)
			if caller.OK {
				next.ServeHTTP(w, r.WithContext(WithClaims(r.Context(), caller.Claims)))
				return
			}
			for name, value := range caller.Header {
				w.Header().Set(name, value)
			}
			w.WriteHeader(caller.Status)
			_, _ = w.Write([]byte(caller.Body))
		})
	}
}

func (v *Verifier) authorizeAt(r *http.Request, origin string) Authorization {
	if origin == "" {
		return v.Authorize(r.Context(), authorizationOf(r.Header))
	}
	// r.RequestURI is used, because it is what the client has sent. Handlers such as http.StripPrefix change r.URL.
	return v.AuthorizeRequest(r.Context(), CallerRequest{r.Method, urlAt(origin, r.RequestURI), r.Header})
}

var absolute = regexp.MustCompile(`^[Hh][Tt][Tt][Pp][Ss]?://[^/?#]*`)

// urlAt returns the URL of a request target at an origin. The target is a path or a whole URL (RFC 9112 section 3.2). For
// any other target it returns an empty text, for which no proof is valid.
func urlAt(origin, target string) string {
	path := target[len(absolute.FindString(target)):]
	if !strings.HasPrefix(path, "/") {
		return ""
	}
	return origin + path
}

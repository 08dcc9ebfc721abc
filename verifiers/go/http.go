package verifier

import (
	"context"
	"net/http"
	"regexp"
)

// Absent is the reason of a request that has no Authorization header.
const Absent Reason = "absent"

// Authorization is the decision about a request, and the response to one that is not authorized: 401 with a challenge
// (RFC 6750 section 3), or 503. Reason is for the log; the body does not have it.
type Authorization struct {
	Verdict
	Status int
	Header map[string]string
	Body   string
}

var bearer = regexp.MustCompile(`^(?i:bearer) +([^\s,]+)$`)

// Authorize verifies the token of an `Authorization: Bearer` header (RFC 6750 section 2.1), empty if there is none. It is
// for frameworks that take no net/http middleware.
func (v *Verifier) Authorize(ctx context.Context, authorization string) Authorization {
	if authorization == "" {
		return unauthenticated(Absent, "Bearer")
	}
	verdict := refuse(Malformed)
	if match := bearer.FindStringSubmatch(authorization); match != nil {
		verdict = v.Verify(ctx, match[1])
	}
	switch {
	case verdict.OK:
		return Authorization{Verdict: verdict}
	case verdict.Reason == Unavailable:
		return Authorization{
			Verdict: verdict,
			Status:  http.StatusServiceUnavailable,
			Header:  map[string]string{"Content-Type": "application/json", "Retry-After": "1"},
			Body:    `{"error":{"code":"E503_UNAVAILABLE","message":"temporarily unavailable, try again"}}`,
		}
	}
	return unauthenticated(verdict.Reason, `Bearer error="invalid_token"`)
}

func unauthenticated(reason Reason, challenge string) Authorization {
	return Authorization{
		Verdict: refuse(reason),
		Status:  http.StatusUnauthorized,
		Header:  map[string]string{"Content-Type": "application/json", "Www-Authenticate": challenge},
		Body:    `{"error":{"code":"E001_AUTH_FAILURE","message":"authentication failed"}}`,
	}
}

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

// Middleware requires a valid access token for every request.
func (v *Verifier) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller := v.Authorize(r.Context(), r.Header.Get("Authorization"))
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

package verifier

import (
	"context"
	"net/http"
	"regexp"
	"strings"
)

// Absent is the reason of a request that has no Authorization header.
const Absent Reason = "absent"

// Authorization is the decision about a request. If the request is not authorized, it has the response to send: 401 with
// a challenge (RFC 6750 section 3), or 503. Reason is for the log; the body does not contain it. Of all reasons, the
// challenge names only Stale.
type Authorization struct {
	Verdict
	Status int
	Header map[string]string
	Body   string
}

// CallerRequest is a request whose token may be bound to a key.
type CallerRequest struct {
	Method string
	// URL is the URL to which the client has sent the request. Take its origin from the configuration and not from the
	// header Host: otherwise a proof for another service would be accepted.
	URL    string
	Header http.Header
}

var (
	bearer = regexp.MustCompile(`^(?i:bearer) +([^\s,]+)$`)
	scheme = regexp.MustCompile(`^(?i:dpop)\b`)
	dpop   = regexp.MustCompile(`^(?i:dpop) +([^\s,]+)$`)
)

const (
	badBearer  = `Bearer error="invalid_token"`
	algorithms = `, algs="ES256 RS256 EdDSA Ed25519"`
	badBound   = `DPoP error="invalid_token"` + algorithms
	badProof   = `DPoP error="invalid_dpop_proof"` + algorithms
	// asStale is added to a challenge: the client gets another token by a refresh, and stays signed in.
	asStale = `, error_description="stale"`
)

// Authorize verifies the token of an `Authorization: Bearer` header (RFC 6750 section 2.1). authorization is empty if the
// request has no such header. It is for frameworks that do not support net/http middleware.
func (v *Verifier) Authorize(ctx context.Context, authorization string) Authorization {
	if authorization == "" {
		return unauthenticated(Absent, "Bearer")
	}
	// A header that has no bearer token is refused, and counted, as an empty token is.
	token, _ := tokenOf(authorization, bearer)
	return respond(v.Verify(ctx, token), badBearer)
}

// AuthorizeRequest verifies the token of a request: with the scheme Bearer as Authorize does, and with the scheme DPoP
// together with its proof (RFC 9449 section 7).
func (v *Verifier) AuthorizeRequest(ctx context.Context, request CallerRequest) Authorization {
	authorization := authorizationOf(request.Header)
	if !scheme.MatchString(authorization) {
		return v.Authorize(ctx, authorization)
	}
	token, _ := tokenOf(authorization, dpop)
	proof := strings.Join(request.Header.Values("Dpop"), ", ")
	verdict := v.VerifyBound(ctx, token, ProvingRequest{request.Method, request.URL, proof})
	if strings.HasPrefix(string(verdict.Reason), "proof_") {
		return respond(verdict, badProof)
	}
	return respond(verdict, badBound)
}

// authorizationOf joins several headers with commas, as other servers do. The result is then refused: a proxy may have read another
// one of them than this process would.
func authorizationOf(header http.Header) string {
	return strings.Join(header.Values("Authorization"), ", ")
}

func tokenOf(authorization string, form *regexp.Regexp) (string, bool) {
	match := form.FindStringSubmatch(authorization)
	if match == nil {
		return "", false
	}
	return match[1], true
}

func respond(verdict Verdict, challenge string) Authorization {
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
	case verdict.Reason == Stale:
		challenge += asStale
	}
	return unauthenticated(verdict.Reason, challenge)
}

func unauthenticated(reason Reason, challenge string) Authorization {
	return Authorization{
		Verdict: refuse(reason),
		Status:  http.StatusUnauthorized,
		Header:  map[string]string{"Content-Type": "application/json", "Www-Authenticate": challenge},
		Body:    `{"error":{"code":"E001_AUTH_FAILURE","message":"authentication failed"}}`,
	}
}

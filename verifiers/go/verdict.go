package verifier

import "encoding/json"

// Reason is why a token is rejected, from a closed list. Every reason but Unavailable is certain: respond 401.
// Unavailable means that the decision is not possible now: respond 503, and keep the client logged in.
type Reason string

const (
	Malformed      Reason = "malformed"
	WrongType      Reason = "wrong_type"
	WrongAlgorithm Reason = "wrong_algorithm"
	UnknownKey     Reason = "unknown_key"
	RevokedKey     Reason = "revoked_key"
	Forged         Reason = "forged"
	WrongIssuer    Reason = "wrong_issuer"
	WrongAudience  Reason = "wrong_audience"
	NotBearer      Reason = "not_bearer"
	NotDeviceBound Reason = "not_device_bound"
	NotYetValid    Reason = "not_yet_valid"
	Expired        Reason = "expired"
	Revoked        Reason = "revoked"
	Stale          Reason = "stale"
	Unavailable    Reason = "unavailable"
)

// Reasons is the closed list of the reasons for which a token is not accepted.
var Reasons = []Reason{
	Malformed, WrongType, WrongAlgorithm, UnknownKey, RevokedKey, Forged, WrongIssuer, WrongAudience,
	NotBearer, NotDeviceBound, NotYetValid, Expired, Revoked, Stale, Unavailable,
}

// Actor is somebody who acts for the subject of a token, perhaps through others (RFC 8693 section 4.1).
type Actor struct {
	Sub string
	Act *Actor
}

// Claims are the claims of a verified access token (RFC 9068 section 2.2). All requests with that token share them: do
// not change them.
type Claims struct {
	Iss string
	Sub string
	Aud []string
	// Exp is when the token expires, in seconds since the epoch, and Iat when it was issued.
	Exp, Iat float64
	Jti      string
	// Sid is the id of the session, by which revocations are matched.
	Sid      string
	ClientID string
	// Sv is how often what the session says has changed; 0 before the first change.
	Sv float64
	// Act is who acts for the subject, such as a member of support; nil if nobody does.
	Act *Actor
	// All has every claim by its name, as encoding/json decodes it.
	All map[string]any
	// Raw is the JSON text of the claims, to be decoded into a type of your own.
	Raw json.RawMessage
}

// Verdict is the decision about a token.
type Verdict struct {
	OK bool
	// Reason is empty for an accepted token.
	Reason Reason
	// Claims is nil for a rejected token.
	Claims *Claims
	// DeviceBound says whether the client has proven possession of the device key of its session.
	DeviceBound bool
}

func refuse(reason Reason) Verdict { return Verdict{Reason: reason} }

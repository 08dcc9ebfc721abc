package verifier

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strings"
	"unicode/utf8"
)

const (
	// maxLength bounds tokens: a longer text is not an access token of the service.
	maxLength = 16_384
	// shortSignatureBytes is the length of a signature by ES256 and EdDSA. One by RS256 is as long as the modulus.
	shortSignatureBytes                        = 64
	minRSASignatureBytes, maxRSASignatureBytes = minRSABits / 8, maxRSABits / 8
	// maxRemembered is the length of the longest token whose verification is remembered, so that long tokens, which
	// anybody can send, do not fill the memory.
	maxRemembered = 2048
)

// checked is a token whose signature, claims and lifetime are valid. Whether its session was revoked is not checked yet.
type checked struct {
	claims                   *Claims
	key                      *key
	deviceBound, isBound     bool
	createdAtMs, expiresAtMs float64
}

func (c *checked) accepted() Verdict {
	return Verdict{OK: true, Claims: c.claims, DeviceBound: c.deviceBound}
}

// presented is a token of a request. allowsBound is true if the caller checks a proof, so the token may be bound to a key.
type presented struct {
	token       string
	allowsBound bool
}

// check checks the signature, the claims and the lifetime of a token. If the reason is UnknownKey, newer keys may change
// the result.
func (v *Verifier) check(given presented) (*checked, Reason) {
	token := given.token
	end, dot := strings.LastIndexByte(token, '.'), strings.IndexByte(token, '.')
	if len(token) > maxLength || dot < 1 || dot >= end {
		return nil, Malformed
	}
	header := token[:dot]
	payload, ok := decodeSegment(token[dot+1 : end])
	signature, isSignature := decodeSegment(token[end+1:])
	if !ok || !isSignature || !isSignatureLength(len(signature)) || !utf8.ValidString(payload) {
		return nil, Malformed
	}
	found, isKnown := v.keys.byHeader(header)
	if !isKnown {
		var reason Reason
		if found, reason = v.findKey(header); found == nil {
			return nil, reason
		}
	}
	if !v.isAuthentic(token, end, signature, found) {
		return nil, Forged
	}
	if !isKnown {
		v.keys.rememberHeader(header, found)
	}
	claims, ok := parseObject(payload)
	if !ok {
		return nil, Malformed
	}
	if reason := v.findFault(claims, given.allowsBound); reason != "" {
		return nil, reason
	}
	return newChecked(claims, payload, found), ""
}

// isSignatureLength returns whether a signature of an accepted algorithm may have this length, in bytes. Whether it is that of
// the key is checked with the signature.
func isSignatureLength(bytes int) bool {
	return bytes == shortSignatureBytes || bytes >= minRSASignatureBytes && bytes <= maxRSASignatureBytes
}

// isAuthentic returns whether the signature is valid. It remembers recent results, because clients may present a refused
// token again and again.
func (v *Verifier) isAuthentic(token string, end int, signature string, by *key) bool {
	if known, ok := v.signatures.get(token); ok && known.key == by {
		return known.isValid
	}
	isValid := by.verifies([]byte(token[:end]), []byte(signature))
	if len(token) <= maxRemembered {
		v.signatures.set(token, knownSignature{by, isValid})
	}
	return isValid
}

type knownSignature struct {
	key     *key
	isValid bool
}

// decodeSegment decodes canonical base64url, which has no padding and no spare bits (RFC 4648 section 3.5).
func decodeSegment(segment string) (string, bool) {
	// The decoder would ignore line breaks.
	if strings.ContainsAny(segment, "\r\n") {
		return "", false
	}
	bytes, err := base64.RawURLEncoding.Strict().DecodeString(segment)
	return string(bytes), err == nil
}

func (v *Verifier) findKey(segment string) (*key, Reason) {
	text, ok := decodeSegment(segment)
	if !ok {
		return nil, Malformed
	}
	header, ok := parseObject(text)
	if !ok {
		return nil, Malformed
	}
	// Other members, such as `crit` or `jwk`, could change how the token is verified (RFC 8725 section 3.10).
	for name := range header {
		if name != "typ" && name != "alg" && name != "kid" {
			return nil, Malformed
		}
	}
	kid, isText := header["kid"].(string)
	if !isText {
		return nil, Malformed
	}
	// The media type of access tokens (RFC 9068 section 4, RFC 7515 section 4.1.9).
	typ, _ := header["typ"].(string)
	if typ = lowerASCII(typ); typ != "at+jwt" && typ != "application/at+jwt" {
		return nil, WrongType
	}
	if alg := header["alg"]; alg != "ES256" && alg != "EdDSA" && alg != "RS256" {
		return nil, WrongAlgorithm
	}
	found, isRevoked := v.keys.find(kid)
	switch {
	case isRevoked:
		return nil, RevokedKey
	case found == nil:
		return nil, UnknownKey
	case found.alg != header["alg"]: // the key decides the algorithm (RFC 8725 section 3.1)
		return nil, WrongAlgorithm
	}
	return found, ""
}

// lowerASCII converts only ASCII letters, because the lower case of some other letters is an ASCII letter.
func lowerASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

// findFault validates the claims as RFC 9068 section 4 does; those that section 2.2 requires must be present.
func (v *Verifier) findFault(claims map[string]any, allowsBound bool) Reason {
	for _, name := range [...]string{"sub", "jti", "sid", "client_id"} {
		if text, _ := claims[name].(string); text == "" {
			return Malformed
		}
	}
	exp, hasExp := timeOf(claims["exp"])
	iat, hasIat := timeOf(claims["iat"])
	if !hasExp || !hasIat {
		return Malformed
	}
	if claims["iss"] != v.settings.Issuer {
		return WrongIssuer
	}
	audiences, ok := audiencesOf(claims["aud"])
	if !ok {
		return Malformed
	}
	isOurs := false
	for _, audience := range audiences {
		isOurs = isOurs || v.settings.audiences[audience]
	}
	if !isOurs {
		return WrongAudience
	}
	// A token that is bound to a key (RFC 7800) needs a proof: somebody who presents it without one may have stolen it.
	if _, isBound := claims["cnf"]; isBound && !allowsBound {
		return NotBearer
	}
	nowMs := v.settings.wallMs()
	if value, has := claims["nbf"]; has {
		if nbf, isTime := timeOf(value); !isTime || nowMs < nbf*1000 {
			return NotYetValid
		}
	}
	switch {
	case nowMs >= exp*1000: // a token is expired on or after this time (RFC 7519 section 4.1.4)
		return Expired
	case exp < iat || !hasVersion(claims) || !hasActor(claims):
		return Malformed
	case v.settings.RequireDeviceBound && claims["device_bound"] != true:
		return NotDeviceBound
	}
	return ""
}

// hasVersion returns whether the version of what the session says is valid. A token from before its first change has none.
func hasVersion(claims map[string]any) bool {
	value, has := claims["sv"]
	version, isNumber := value.(float64)
	return !has || isNumber && version == math.Trunc(version) && version >= 0 && version <= math.MaxUint32
}

// hasActor returns whether the member `act` is valid, if there is one (RFC 8693 section 4.1).
func hasActor(claims map[string]any) bool {
	value, has := claims["act"]
	if !has {
		return true
	}
	actor, _ := value.(map[string]any)
	sub, _ := actor["sub"].(string)
	return sub != "" && hasActor(actor)
}

func actorOf(claims map[string]any) *Actor {
	actor, isActor := claims["act"].(map[string]any)
	if !isActor {
		return nil
	}
	sub, _ := actor["sub"].(string)
	return &Actor{sub, actorOf(actor)}
}

// timeOf returns a time in seconds since the epoch. A JSON number may also be infinite, such as 1e999.
func timeOf(value any) (float64, bool) {
	seconds, ok := value.(float64)
	return seconds, ok && !math.IsInf(seconds, 0)
}

func audiencesOf(value any) ([]string, bool) {
	if text, ok := value.(string); ok {
		return []string{text}, true
	}
	list, ok := value.([]any)
	texts := make([]string, 0, len(list))
	for _, item := range list {
		text, isText := item.(string)
		ok = ok && isText
		texts = append(texts, text)
	}
	return texts, ok
}

func newChecked(all map[string]any, payload string, by *key) *checked {
	text := func(name string) string { value, _ := all[name].(string); return value }
	exp, _ := all["exp"].(float64)
	iat, _ := all["iat"].(float64)
	aud, _ := audiencesOf(all["aud"])
	// If a token has no `sct`, its session counts as created when the token was issued.
	createdAtMs, ok := all["sct"].(float64)
	if !ok {
		createdAtMs = iat * 1000
	}
	sv, _ := all["sv"].(float64)
	claims := &Claims{
		Iss: text("iss"), Sub: text("sub"), Aud: aud, Exp: exp, Iat: iat, Jti: text("jti"), Sid: text("sid"),
		ClientID: text("client_id"), Sv: sv, Act: actorOf(all), All: all, Raw: json.RawMessage(payload),
	}
	_, isBound := all["cnf"]
	return &checked{claims, by, all["device_bound"] == true, isBound, createdAtMs, exp * 1000}
}

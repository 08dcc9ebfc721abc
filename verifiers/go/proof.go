package verifier

import (
	"crypto/sha256"
	"encoding/base64"
	"math"
	"strings"
	"unicode/utf16"
)

const (
	// maxProofLength is enough for a proof with an RSA key of 4,096 bits and a URL of 2,000 characters.
	maxProofLength = 8192
	maxJtiLength   = 256
	// proofToleranceMs is how far `iat` of a proof may be from the wall clock.
	proofToleranceMs = 60_000
)

// ProvingRequest is a request with a proof, and the facts that the proof is compared with (RFC 9449 section 7).
type ProvingRequest struct {
	Method string
	// URL is the URL to which the client has sent the request; behind a proxy, it is the public one. Take its origin from
	// the configuration and not from the header Host: otherwise a proof for another service would be accepted.
	URL string
	// Proof is the value of the header DPoP, empty if there is none. Several headers are joined with commas.
	Proof string
}

// proof is a verified proof. Still to be checked are whether it is a replay, and whether the token is bound to its key.
type proof struct {
	// thumbprint is the thumbprint of the proof's key (RFC 7638).
	thumbprint string
	id         [sha256.Size]byte
}

// verifyProof verifies a proof (RFC 9449 section 4.3). The reason is empty if it is valid.
func verifyProof(request ProvingRequest, token string, nowMs float64) (proof, Reason) {
	text := request.Proof
	if text == "" {
		return proof{}, ProofAbsent
	}
	if strings.Contains(text, ",") {
		return proof{}, ProofAmbiguous
	}
	segments := strings.Split(text, ".")
	if len(text) > maxProofLength || len(segments) != 3 || segments[1] == "" || segments[2] == "" {
		return proof{}, ProofMalformed
	}
	header, isHeader := decodeObject(segments[0])
	signature, isSignature := decodeSegment(segments[2])
	if !isHeader || !isSignature || !isBase64URL(segments[1]) {
		return proof{}, ProofMalformed
	}
	key, reason := findProofKey(header)
	if reason != "" {
		return proof{}, reason
	}
	claims, isObject := decodeObject(segments[1])
	if !isObject {
		return proof{}, ProofMalformed
	}
	if reason := findProofFault(claims, request, nowMs); reason != "" {
		return proof{}, reason
	}
	if hash := sha256.Sum256([]byte(token)); claims["ath"] != base64.RawURLEncoding.EncodeToString(hash[:]) {
		return proof{}, ProofWrongToken
	}
	verifies := key.open()
	if verifies == nil {
		return proof{}, ProofBadKey
	}
	if !verifies([]byte(text[:len(segments[0])+1+len(segments[1])]), []byte(signature)) {
		return proof{}, ProofForged
	}
	hash := sha256.Sum256([]byte(key.canonical))
	thumbprint := base64.RawURLEncoding.EncodeToString(hash[:])
	jti, _ := claims["jti"].(string)
	return proof{thumbprint, sha256.Sum256([]byte(thumbprint + "." + jti))}, ""
}

// findProofKey returns the key in the header of a proof.
func findProofKey(header map[string]any) (*proofKey, Reason) {
	// These header members would change what is signed, or how it is read (RFC 7515 section 4.1.11, RFC 7797).
	for _, name := range [...]string{"crit", "b64"} {
		if _, has := header[name]; has {
			return nil, ProofMalformed
		}
	}
	if header["typ"] != "dpop+jwt" {
		return nil, ProofWrongType
	}
	alg, _ := header["alg"].(string)
	if alg != "ES256" && alg != "RS256" && alg != "EdDSA" && alg != "Ed25519" {
		return nil, ProofWrongAlgorithm
	}
	jwk, _ := header["jwk"].(map[string]any)
	if key := readProofKey(alg, jwk); key != nil {
		return key, ""
	}
	return nil, ProofBadKey
}

func findProofFault(claims map[string]any, request ProvingRequest, nowMs float64) Reason {
	jti, _ := claims["jti"].(string)
	if jti == "" || len(utf16.Encode([]rune(jti))) > maxJtiLength {
		return ProofMalformed
	}
	for _, name := range [...]string{"ath", "nonce"} {
		if value, has := claims[name]; has {
			if _, isText := value.(string); !isText {
				return ProofMalformed
			}
		}
	}
	htm, hasMethod := claims["htm"].(string)
	htu, hasURL := claims["htu"].(string)
	iat, hasTime := timeOf(claims["iat"])
	if !hasMethod || !hasURL || !hasTime {
		return ProofMalformed
	}
	if htm != request.Method {
		return ProofWrongMethod
	}
	url, isURL := proofURL(htu)
	if wanted, isWanted := proofURL(request.URL); !isURL || !isWanted || url != wanted {
		return ProofWrongURL
	}
	if math.Abs(nowMs-iat*1000) > proofToleranceMs {
		return ProofStale
	}
	return ""
}

// decodeObject decodes a segment that is a JSON object.
func decodeObject(segment string) (map[string]any, bool) {
	text, ok := decodeSegment(segment)
	if !ok {
		return nil, false
	}
	return parseObject(text)
}

func isBase64URL(segment string) bool {
	for _, c := range []byte(segment) {
		if !isUnreserved(c) || c == '.' || c == '~' {
			return false
		}
	}
	return true
}

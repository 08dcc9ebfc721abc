package verifier

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const provenURL = "https://api.example/things/1"

// boundCases returns a bound token of the vectors, and proofs of its key for POST requests to provenURL.
func boundCases(t testing.TB, file vectorFile) (token string, proofs []string) {
	t.Helper()
	for _, one := range file.Cases {
		if one.Verdict != "accepted" || len(one.Requests) != 1 || one.Feed != nil || one.Options != nil {
			continue
		}
		if request := one.Requests[0]; request.URL == provenURL && request.Method == "POST" {
			if token == "" {
				token = one.Token
			}
			if one.Token == token && request.Proof != "" {
				proofs = append(proofs, request.Proof)
			}
		}
	}
	if len(proofs) < 10 {
		t.Fatal("the vectors have too few proofs")
	}
	return token, proofs
}

func TestBoundMiddleware(t *testing.T) {
	file := readVectorFile(t)
	v := offline(t, file)
	token, proofs := boundCases(t, file)
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(CallerClaims(r.Context()).Sub))
	})
	const badProof, badBound = `DPoP error="invalid_dpop_proof"` + algorithms, `DPoP error="invalid_token"` + algorithms
	for _, each := range []struct {
		origin, target, authorization string
		proofs                        []string
		status                        int
		challenge                     string
	}{
		{"https://api.example", "/things/1?a=b", "DPoP " + token, proofs[:1], 200, ""},
		{"https://api.example", "/things/1", "dpop  " + token, proofs[1:2], 200, ""},
		{"https://api.example", "http://10.0.0.1/things/1", "DPoP " + token, proofs[2:3], 200, ""},
		{"https://api.example", "/things/1", "DPoP " + token, proofs[:1], 401, badProof},
		{"https://api.example", "/things/1", "DPoP " + token, proofs[3:5], 401, badProof},
		{"https://api.example", "/things/1", "DPoP " + token, nil, 401, badProof},
		{"https://api.example", "/things/2", "DPoP " + token, proofs[3:4], 401, badProof},
		{"https://other.example", "/things/1", "DPoP " + token, proofs[3:4], 401, badProof},
		{"https://api.example", "/things/1", "DPoP " + token[1:], proofs[3:4], 401, badBound},
		{"https://api.example", "/things/1", "DPoP", proofs[3:4], 401, badBound},
		{"https://api.example", "/things/1", "DPoP " + file.Cases[0].Token, proofs[3:4], 401, badProof},
		{"https://api.example", "/things/1", "Bearer " + token, proofs[3:4], 401, badBearer},
		{"https://api.example", "/things/1", "Bearer " + file.Cases[0].Token, nil, 200, ""},
		{"", "/things/1", "DPoP " + token, proofs[3:4], 401, badBearer},
		{"https://api.example", "/things/1", "DPoP " + token, proofs[3:4], 200, ""},
		{"https://api.example/", "/things/1", "DPoP " + token, proofs[5:6], 200, ""},
		{"HTTPS://API.example:443", "/things/1", "DPoP " + token, proofs[6:7], 200, ""},
	} {
		handler := v.BoundMiddleware(AdapterOptions{Origin: each.origin})(hello)
		request := httptest.NewRequest(http.MethodPost, each.target, nil)
		request.Header.Set("Authorization", each.authorization)
		request.Header["Dpop"] = each.proofs
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, request)
		if response.Code != each.status || response.Header().Get("WWW-Authenticate") != each.challenge {
			t.Errorf("%s%s %.20q: %d %v", each.origin, each.target, each.authorization, response.Code, response.Header())
		}
		if each.status == 200 && response.Body.String() != "user-1" {
			t.Errorf("%q has no claims", response.Body)
		}
	}
}

func TestBoundTokenIsNoBearerToken(t *testing.T) {
	file := readVectorFile(t)
	v := offline(t, file)
	token, proofs := boundCases(t, file)
	ctx := context.Background()
	for turn := 0; turn < 2; turn++ {
		if verdict := v.Verify(ctx, token); verdict.Reason != NotBearer {
			t.Fatalf("as a bearer token: %q", verdict.Reason)
		}
		verdict := v.VerifyBound(ctx, token, ProvingRequest{"POST", provenURL, proofs[turn]})
		if !verdict.OK {
			t.Fatalf("with its proof: %q", verdict.Reason)
		}
	}
}

func TestWhatIsNoOriginPanics(t *testing.T) {
	v := offline(t, readVectorFile(t))
	for _, origin := range []string{
		"api.example", "null", "https://api.example/v1", "https://api.example//", "https://api.example?a",
		"https://api.example/#a", "https://user@api.example", "ftp://api.example", "https://",
	} {
		func() {
			defer func() {
				if message, _ := recover().(string); !strings.HasPrefix(message, "verifier: Origin must be") {
					t.Errorf("%q: %q", origin, message)
				}
			}()
			v.BoundMiddleware(AdapterOptions{Origin: origin})
		}()
	}
}

func TestTargets(t *testing.T) {
	for target, url := range map[string]string{
		"/a?b": "https://o/a?b", "http://h:1/a": "https://o/a", "HTTPS://h/a": "https://o/a", "": "", "*": "", "a": "",
		".evil.example/a": "", "@evil.example/a": "", "http://h": "", "httpſ://h/a": "", "//h/a": "https://o//h/a",
	} {
		if found := urlAt("https://o", target); found != url {
			t.Errorf("%q is %q", target, found)
		}
	}
}

func TestReplays(t *testing.T) {
	id := func(n byte) [32]byte { return [32]byte{n} }
	r := newReplays(0, 4)
	for _, each := range []struct {
		id    byte
		nowMs float64
		isNew bool
	}{
		{1, 0, true}, {1, proofLifeMs - 1, false}, {1, proofLifeMs, false}, {2, proofLifeMs, true},
		{2, 2 * proofLifeMs, false}, {1, 2 * proofLifeMs, true}, {1, 4 * proofLifeMs, true},
		// When the young half is full, the proofs of the old half are forgotten.
		{2, 4 * proofLifeMs, true}, {3, 4 * proofLifeMs, true}, {1, 4 * proofLifeMs, false}, {4, 4 * proofLifeMs, true},
		{5, 4 * proofLifeMs, true}, {3, 4 * proofLifeMs, false}, {1, 4 * proofLifeMs, true},
	} {
		if found := r.isNew(id(each.id), each.nowMs); found != each.isNew {
			t.Errorf("%d at %f: %t", each.id, each.nowMs, found)
		}
	}
}

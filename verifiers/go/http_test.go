package verifier

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestMiddleware(t *testing.T) {
	file := readVectorFile(t)
	v := offline(t, file)
	handler := v.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(CallerClaims(r.Context()).Sub))
	}))
	good := file.Cases[0].Token
	for _, each := range []struct {
		authorization string
		status        int
		challenge     string
	}{
		{"Bearer " + good, 200, ""},
		{"bearer   " + good, 200, ""},
		{"", 401, "Bearer"},
		{"Bearer", 401, `Bearer error="invalid_token"`},
		{"Bearer " + good + ", Bearer x", 401, `Bearer error="invalid_token"`},
		{"Basic dTpw", 401, `Bearer error="invalid_token"`},
		{"Bearer" + good, 401, `Bearer error="invalid_token"`},
		{"Bearer " + good[1:], 401, `Bearer error="invalid_token"`},
	} {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		if each.authorization != "" {
			request.Header.Set("Authorization", each.authorization)
		}
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, request)
		if response.Code != each.status || response.Header().Get("WWW-Authenticate") != each.challenge {
			t.Errorf("%.20q: %d %v", each.authorization, response.Code, response.Header())
		}
		if each.status == 200 && response.Body.String() != "user-1" {
			t.Errorf("%q has no claims", response.Body)
		}
	}
	for _, origin := range []string{"", "https://api.example"} {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		request.Header["Authorization"] = []string{"Bearer " + good, "Bearer x"}
		response := httptest.NewRecorder()
		v.BoundMiddleware(AdapterOptions{Origin: origin})(handler).ServeHTTP(response, request)
		if response.Code != 401 {
			t.Errorf("two headers: %d", response.Code)
		}
	}
	unread, err := New(Options{JWKSURL: "http://127.0.0.1:1/", Issuer: "i", Audience: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	defer unread.Close()
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	request.Header.Set("Authorization", "Bearer "+good)
	response := httptest.NewRecorder()
	unread.Middleware(handler).ServeHTTP(response, request)
	if response.Code != 503 || response.Header().Get("Retry-After") != "1" {
		t.Errorf("without keys: %d %v", response.Code, response.Header())
	}
}

func TestStaleTokensAreChallengedByTheirScheme(t *testing.T) {
	file := readVectorFile(t)
	api := newAdminAPI(t)
	good := file.Cases[0].Token
	bound, proofs := boundCases(t, file)
	api.batch = `{"cursor":"1","caughtUp":true,"staleTokens":[{"sessionId":"AAECAwQFBgcICQoLDA0ODxA","minVersion":1}]}`
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	v, err := New(Options{
		AdminURL: server.URL, AdminToken: func() string { return "any" }, Issuer: file.Options.Issuer,
		Audience: []string{file.Options.Audience}, Policy: Refuse,
		Clock: func() time.Time { return time.UnixMilli(file.Cases[0].NowMs) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	if err := v.Ready(context.Background()); err != nil {
		t.Fatal(err)
	}
	for authorization, challenge := range map[string]string{
		"Bearer " + good: `Bearer error="invalid_token", error_description="stale"`,
		"DPoP " + bound:  `DPoP error="invalid_token", algs="ES256 RS256 EdDSA Ed25519", error_description="stale"`,
	} {
		header := http.Header{"Authorization": {authorization}, "Dpop": {proofs[0]}}
		caller := v.AuthorizeRequest(context.Background(), CallerRequest{http.MethodPost, provenURL, header})
		if caller.Reason != Stale || caller.Status != 401 || caller.Header["Www-Authenticate"] != challenge {
			t.Errorf("%.6q: %v", authorization, caller)
		}
	}
}

func TestOptions(t *testing.T) {
	token := func() string { return "" }
	right := Options{Issuer: "https://a", Audience: []string{"a"}, JWKSURL: "http://127.0.0.1:1"}
	for what, change := range map[string]func(*Options){
		"Issuer":                         func(o *Options) { o.Issuer = "" },
		"needs AdminURL":                 func(o *Options) { o.JWKSURL = "" },
		"needs an Audience":              func(o *Options) { o.Audience = nil },
		"an Audience is empty":           func(o *Options) { o.Audience = []string{"a", " "} },
		"AdminURL needs AdminToken":      func(o *Options) { o.AdminURL = "http://127.0.0.1:1" },
		"a Policy needs AdminURL":        func(o *Options) { o.Policy = Introspect },
		"Policy must be":                 func(o *Options) { o.AdminURL, o.AdminToken, o.Policy = "http://a", token, "x" },
		"CacheSize must be":              func(o *Options) { o.CacheSize = 1 },
		"must be http:// or https://":    func(o *Options) { o.JWKSURL = "keys" },
		"AdminURL and JWKSURL must be h": func(o *Options) { o.AdminURL, o.AdminToken = "ftp://a", token },
		"and JWKSURL must be http:":      func(o *Options) { o.JWKSURL = "http://u:secret@a:port" },
	} {
		options := right
		change(&options)
		v, err := New(options)
		if err == nil {
			v.Close()
		}
		if err == nil || !strings.Contains(err.Error(), what) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", what, err)
		}
	}
	v, err := New(right)
	if err != nil {
		t.Fatal(err)
	}
	v.Close()
}

package verifier

import (
	"net/http"
	"net/http/httptest"
	"testing"
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

func TestOptions(t *testing.T) {
	for what, options := range map[string]Options{
		"without an address":        {Audience: []string{"a"}},
		"without an audience":       {JWKSURL: "http://127.0.0.1:1"},
		"without an admin token":    {Audience: []string{"a"}, AdminURL: "http://127.0.0.1:1"},
		"a policy and no feed":      {Audience: []string{"a"}, JWKSURL: "http://127.0.0.1:1", Policy: Introspect},
		"an unknown policy":         {Audience: []string{"a"}, AdminURL: "http://a", AdminToken: func() string { return "" }, Policy: "x"},
		"a cache of one token":      {Audience: []string{"a"}, JWKSURL: "http://127.0.0.1:1", CacheSize: 1},
		"an address that is none":   {Audience: []string{"a"}, JWKSURL: "127.0.0.1:1"},
		"an admin API that is none": {Audience: []string{"a"}, AdminURL: "ftp://a", AdminToken: func() string { return "" }},
	} {
		if v, err := New(options); err == nil {
			v.Close()
			t.Errorf("%s: no error", what)
		}
	}
}
